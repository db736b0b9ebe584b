"""Results as CSV files: plain, with a header, and every digit of a number."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    r"""A CSV file as UTF-8. Floats are written so that reading them gives the same float.

    >>> to_csv(("frame", "mse"), [(0, 0.1), (1, 1e-20)])
    b'frame,mse\n0,0.1\n1,1e-20\n'
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode(errors="surrogateescape")
