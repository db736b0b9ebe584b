"""Results as CSV files: plain, with a header, and every digit of a number."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from psmt.experiments.prediction import PhaseResult, Row


def prediction_csv(results: Iterable[PhaseResult], mode: Literal["scores", "rollouts"] = "scores") -> bytes:
    """Table of one-step predictions ('scores') or of free-running ones ('rollouts'), one line per predicted patch."""
    return to_csv(Row._fields, (row for result in results for row in result.rows(mode)))


def reconstruction_csv(errors: NDArray[np.float64]) -> bytes:
    """Table of the MSE (time,) of each frame."""
    return to_csv(("frame", "mse"), enumerate(errors.tolist()))


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    r"""A CSV file as UTF-8. Floats are written so that reading them gives the same float.

    >>> to_csv(("frame", "mse"), [(0, 0.1), (1, 1e-20)])
    b'frame,mse\n0,0.1\n1,1e-20\n'
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()
