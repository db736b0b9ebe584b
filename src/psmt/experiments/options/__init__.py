"""Declarations of parameters, and options that commands share. No heavy imports, so that --help is fast."""
