"""Helpers without knowledge of the model: validation, BLAS threads, compiled kernels, atomic files, data on disk."""
