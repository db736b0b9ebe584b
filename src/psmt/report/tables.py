"""CSV files, and tables of reports. These tables are made from records and column definitions."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self

_AT_A_TIME = 1000  # number of lines of a long CSV file that are held in memory


class Cell(NamedTuple):
    """The text of a table cell, and its mark: whether its value is best, loses or is missing, or '' for no mark."""

    text: str
    mark: Literal["", "best", "loses", "missing"] = ""


@dataclass(frozen=True)
class Column:
    """Definition of a column: which value of a record is shown, how it is written, and which values are marked."""

    name: str
    value: str | Callable[[Any], Any]
    """Name of an attribute of the records, or function of a record. A `Cell` is shown as it is."""
    write: Callable[[Any], str] = str
    best: Callable[[Iterable[Any]], Any] | None = None
    """`min` or `max`. Values that are equal to the smallest or largest value of the column are marked as best."""
    loses: Callable[[Any], bool] | None = None
    """Function of a record that returns whether its value is marked as losing."""

    def cells(self, records: Sequence[Any]) -> list[Cell]:
        """Return the cells of this column, one for each record."""
        read = attrgetter(self.value) if isinstance(self.value, str) else self.value
        values = [read(record) for record in records]
        known = [value for value in values if not isinstance(value, Cell) and value == value]
        best = self.best(known) if self.best is not None and known else None

        def cell(record: Any, value: Any) -> Cell:
            if isinstance(value, Cell):
                return value
            if self.loses is not None and self.loses(record):
                return Cell(self.write(value), "loses")
            return Cell(self.write(value), "best" if self.best is not None and value == best else "")

        return list(map(cell, records, values))


@dataclass(frozen=True)
class Table:
    """Caption, column names and rows of a table. The first cell of a row is its name."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    @classmethod
    def of(cls, caption: str, records: Iterable[Any], columns: Sequence[Column]) -> Self:
        """Return a table with a row for each record, and marked cells.

        >>> records = [Cell("PSMT"), Cell("copy last frame")]
        >>> columns = [Column("method", "text"), Column("letters", lambda record: len(record.text), best=min)]
        >>> table = Table.of("Length of names", records, columns)
        >>> table.rows[0]
        (Cell(text='PSMT', mark=''), Cell(text='4', mark='best'))
        """
        listed = list(records)
        cells = [column.cells(listed) for column in columns]
        return cls(caption, [column.name for column in columns], list(zip(*cells, strict=True)))

    @classmethod
    def of_rows(cls, caption: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> Self:
        """Return a table of `rows`. The function `str` converts their values to text. No cell is marked."""
        return cls(caption, columns, [[Cell(str(value)) for value in row] for row in rows])


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    r"""Return a CSV file in UTF-8, with a header line. Floats are written with all digits.

    >>> to_csv(("frame", "mse"), [(0, 0.1), (1, 1e-20)])
    b'frame,mse\n0,0.1\n1,1e-20\n'
    """
    return b"".join(csv_parts(columns, rows))


def csv_parts(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield the CSV file of `to_csv` in parts, for tables that do not fit into memory."""
    yield csv_lines([columns])
    rows = iter(rows)
    while part := list(islice(rows, _AT_A_TIME)):
        yield csv_lines(part)


def csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    """Return rows as lines of a CSV file."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="surrogateescape")
