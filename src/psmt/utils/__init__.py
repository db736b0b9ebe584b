"""Helpers that do not depend on the model: validation, threads, compilation, atomic files, data on disk."""
