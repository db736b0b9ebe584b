"""Reconstruction: every frame through the embedding of all frames and back (the original sparse manifold transform)."""
