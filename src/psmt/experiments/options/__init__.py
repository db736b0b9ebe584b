"""Declarations of parameters, and options that commands share. Free of heavy imports, so that --help is quick."""
