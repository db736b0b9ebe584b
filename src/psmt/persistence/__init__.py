"""Model files: a zip of plain arrays and a JSON header, checked against a schema. Nothing is ever unpickled."""
