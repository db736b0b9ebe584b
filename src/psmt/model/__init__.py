"""`PSMT`: Algorithm 1 of the paper, as an estimator.

`state` defines the parameters, the fitted state, and saving and loading. `fitting` defines `fit`. `algorithm` defines
the class `PSMT` with the eight steps of Algorithm 1. `intervals` and `tables` are used by its `predict`.
"""

from psmt.model.algorithm import PSMT

__all__ = ["PSMT"]
