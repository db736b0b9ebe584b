"""Whole frames, each predicted from those before it, and a film of the predictions."""
