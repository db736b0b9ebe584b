"""Helpers that are independent of the model: validation, threads, compilation, atomic files, data on disk."""
