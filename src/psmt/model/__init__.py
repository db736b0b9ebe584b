"""`PSMT`: Algorithm 1 of the paper, as an estimator.

Each file adds one thing: `state` (parameters, what a fitted model holds, saving and loading), `fitting` (`fit`) and
`algorithm` (the eight steps).
"""

from psmt.model.algorithm import PSMT

__all__ = ["PSMT"]
