"""Reconstruction of each frame with one embedding of all frames (the original sparse manifold transform)."""
