"""Numerical methods that several parts of the package use: array functions, rank and signs."""
