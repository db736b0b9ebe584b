"""The engine of the CPU: NumPy, LAPACK and compiled kernels."""
