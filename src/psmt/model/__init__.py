"""`PSMT`: Algorithm 1 of the paper, as an estimator.

`state` has the parameters, the fitted state, and saving and loading. `fitting` has `fit`. `algorithm` has the class
`PSMT` with the eight steps of Algorithm 1. `intervals` and `tables` serve its `predict`.
"""

from psmt.model.algorithm import PSMT

__all__ = ["PSMT"]
