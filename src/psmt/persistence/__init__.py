"""Model files: a zip archive of plain arrays and a JSON header, checked against a schema. Nothing is unpickled."""

from psmt.persistence.model_file import SavedModel, load_model

__all__ = ["SavedModel", "load_model"]
