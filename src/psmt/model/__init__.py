"""`PSMT`: Algorithm 1 of the paper, as an estimator.

Each file adds one thing: `parameters` (what it is told), `state` (what it has, saved and loaded), `learning` (`fit`),
`algorithm` (the eight steps).
"""

from psmt.model.algorithm import PSMT

__all__ = ["PSMT"]
