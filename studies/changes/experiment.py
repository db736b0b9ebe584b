from studies.changes.report import EXPERIMENT

__all__ = ["EXPERIMENT"]
