"""Helpers that do not depend on the model: validation, BLAS threads, compiled kernels, atomic files, data on disk."""
