from studies.readings.report import EXPERIMENT

__all__ = ["EXPERIMENT"]
