"""Results as CSV files: plain, with a header, and every digit of a number."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import islice

_AT_A_TIME = 1000
"""Lines that are held of a file that is as long as the film."""


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    r"""A CSV file as UTF-8. Floats are written so that reading them gives the same float.

    >>> to_csv(("frame", "mse"), [(0, 0.1), (1, 1e-20)])
    b'frame,mse\n0,0.1\n1,1e-20\n'
    """
    return b"".join(csv_parts(columns, rows))


def csv_parts(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield the same file in parts, for tables that memory should not hold."""
    yield csv_lines([columns])
    rows = iter(rows)
    while part := list(islice(rows, _AT_A_TIME)):
        yield csv_lines(part)


def csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    """Lines of such a file."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="surrogateescape")
