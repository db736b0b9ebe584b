"""Data frames as input and output. A model fitted to a data frame predicts data frames that continue its index."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from psmt.types import Array
from psmt.utils.constraints import Constraint, allowing, check_real, choice, count, mapping, text

_PANDAS = "pandas"


@dataclass(frozen=True)
class TableForm:
    """Library (pandas or polars) and index of the table that a model was fitted to.

    An index of dates, periods or numbers with a constant step is continued in predictions. Otherwise predicted rows are
    numbered 1, 2, 3, .. by their steps ahead.
    """

    library: str
    kind: str = ""
    """Kind of index: 'dates', 'periods' or 'numbers', or an empty string if the index does not continue."""
    last: str | float = 0.0
    step: str | float = 1.0
    zone: str | None = None
    received: int = 0
    """Number of rows received after the table."""

    @classmethod
    def of(cls, table: object, fitted: Self | None = None) -> Self | None:
        """Return library and index of a data frame, or None for others. One or two rows have the step of `fitted`."""
        library = type(table).__module__.partition(".")[0]
        if library not in (_PANDAS, "polars") or not hasattr(table, "columns"):
            return None
        form, index = cls(library), getattr(table, "index", None)
        if index is None:
            return form
        learned = None if len(index) > 2 else {fitted.kind: fitted.step} if fitted is not None else {}
        import pandas as pd

        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # pandas 4 returns an offset
            inferred = pd.infer_freq if learned is None else lambda _: learned.get("dates")
            step = isinstance(index, pd.DatetimeIndex) and (index.freqstr or inferred(index))
        if step:
            zone = index.tz and str(index.tz)
            last = index[-1].tz_convert("UTC").tz_localize(None) if zone else index[-1]
            return replace(form, kind="dates", last=last.isoformat(), step=getattr(step, "freqstr", step), zone=zone)
        if isinstance(index, pd.PeriodIndex) and (np.diff(index.asi8) == 1).all():
            return replace(form, kind="periods", last=str(index[-1]), step=index.freqstr)
        if pd.api.types.is_numeric_dtype(index.dtype):
            steps = set(np.diff(index).tolist()) if learned is None else {learned.get("numbers", 0)}
            if len(steps) == 1 and steps != {0}:
                return replace(form, kind="numbers", last=index.tolist()[-1], step=steps.pop())
        return form

    @staticmethod
    def check_stored(name: str, stored: object) -> None:
        """Raise an error unless `stored` has the entries that `to_json` returns. The message calls it `name`."""
        word, number = allowing(None, text), allowing(None, count(0))
        kinds = choice("", "dates", "periods", "numbers")
        own: dict[str, Constraint] = {"library": choice(_PANDAS, "polars"), "kind": kinds, "last": _label}
        mapping(own | {"step": _label, "zone": word, "received": number})(name, stored)

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> Self | None:
        """Return the `TableForm` that `to_json` was called on, or None for None."""
        form = None if stored is None else cls(**stored)
        if form is not None and form.kind:
            form.after(1)  # raises an error if the index cannot be continued
        return form

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can store."""
        return asdict(self)

    def after(self, n: int) -> Any:
        """Return the index of the next `n` rows after the last received row."""
        import pandas as pd

        first = self.received + 1
        if self.kind == "dates":
            last = pd.Timestamp(self.last)
            last = last.tz_localize("UTC").tz_convert(self.zone) if self.zone else last
            return pd.date_range(last, periods=first + n, freq=self.step)[first:]
        if self.kind == "periods":
            return pd.period_range(self.last, periods=first + n, freq=self.step)[first:]
        if self.kind == "numbers":
            number = int if isinstance(self.last, int) else float
            return pd.Index(number(self.last) + number(self.step) * np.arange(first, first + n))
        return pd.RangeIndex(1, n + 1)

    def following(self, rows: Any) -> Any:
        """Return the index of the predictions made after each row of `rows`: the labels of the rows that follow."""
        return rows.index[1:].append(self.after(1)) if self.kind else self.after(len(rows))


def as_table(values: Array, names: Any, library: str, index: Any, *, single: bool) -> Any:
    """Return frames (n, n_features) as a data frame. If `single` is True, pandas gives a Series named by its time."""
    if library != _PANDAS:
        try:
            import polars
        except ModuleNotFoundError:
            raise ImportError("transform='polars' needs polars: pip install polars, or use 'pandas'") from None
        return polars.DataFrame(values, schema=list(names))
    import pandas as pd

    table = pd.DataFrame(values, columns=names, index=pd.RangeIndex(1, len(values) + 1) if index is None else index)
    return table.iloc[0] if single else table


def _label(name: str, value: object) -> None:
    if not isinstance(value, str):
        check_real(name, value, minimum=-1e15)
