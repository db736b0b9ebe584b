"""Studies of the method that are run once: ``python -m studies.readings FILM``. They are not part of the package."""
