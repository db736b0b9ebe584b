"""Numerical methods that several stages use: array functions, rank and signs."""
