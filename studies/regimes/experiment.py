from studies.regimes.report import EXPERIMENT

__all__ = ["EXPERIMENT"]
