"""Declarations of parameters, and options that commands share. For a fast --help, nothing heavy is imported."""
