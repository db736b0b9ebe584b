"""`PSMT`: Algorithm 1 of the paper, as an estimator.

`state` has the parameters, the fitted state, and saving and loading. `fitting` has `fit`. `forecasting` has
`predict`, with `intervals` and `tables`. `algorithm` has the eight steps of Algorithm 1.
"""

from psmt.model.algorithm import PSMT

__all__ = ["PSMT"]
