"""Declarations of parameters, and options that commands share. This package has no heavy imports: --help is fast."""
