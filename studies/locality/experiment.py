from studies.locality.report import EXPERIMENT

__all__ = ["EXPERIMENT"]
