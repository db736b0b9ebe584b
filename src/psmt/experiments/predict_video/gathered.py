"""What is kept of a film while it is predicted, in memory and as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step
from psmt.experiments.predict_video.events import EventWatch
from psmt.experiments.predict_video.result import Still
from psmt.types import Result

Row = TypeVar("Row", bound=NamedTuple)


class Gathered:
    """Numbers of all steps, pictures of a few, and the rollouts under way.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the frames.
    methods : sequence of str
        Names of what is compared.
    watch : EventWatch
        What looks for events.
    """

    def __init__(self, shape: tuple[int, int], methods: Sequence[str], watch: EventWatch) -> None:
        self.n = 0
        """Steps so far."""
        self.rows: list[FrameRow] = []
        self.rollouts: list[RolloutRow] = []
        self.errors = {name: np.zeros(shape) for name in methods}
        """Squared errors (height, width), summed over the steps, by method."""
        self.seconds = dict.fromkeys(methods, 0.0)
        self.learning = 0.0
        """Seconds that fitting took."""
        self.stills: dict[str, Still] = {}
        self.under_way: Sequence[Rollout] = ()
        self.watch = watch

    def add(self, step: Step) -> None:
        """Keep what is wanted of the next step."""
        self.n += 1
        self.rows += step.rows.values()
        self.rollouts += step.rollouts
        self.under_way = step.under_way
        for name, predicted in step.predicted.items():
            self.errors[name] += (predicted - step.frame) ** 2
            self.seconds[name] += step.seconds[name]
        self.watch.add(step)
        row = step.rows["psmt"]
        still = Still(row, step.last, step.frame, step.predicted["psmt"])
        for key, sign in (("best", 1), ("worst", -1)):
            held = self.stills.get(key)
            # Where nothing moves there is no ratio, and nothing to gain.
            if held is None or np.isnan(held.row.ratio) or sign * row.ratio < sign * held.row.ratio:
                self.stills[key] = still
        self.stills["last"] = still

    def of(self, method: str) -> list[FrameRow]:
        """Lines of one method, in order."""
        return [row for row in self.rows if row.method == method]

    def get_state(self) -> Result:
        """All of it as arrays."""
        state: Result = {"n": np.array(self.n), "learning": np.array(self.learning)}
        state |= _columns("rows", FrameRow, self.rows) | _columns("rollouts", RolloutRow, self.rollouts)
        for name, total in self.errors.items():
            state |= {f"errors/{name}": total, f"seconds/{name}": np.array(self.seconds[name])}
        for name, still in self.stills.items():
            state |= _columns(f"stills/{name}/row", FrameRow, [still.row])
            state |= {f"stills/{name}/{part}": getattr(still, part) for part in ("last", "frame", "predicted")}
        state["under_way"] = np.array([rollout.start for rollout in self.under_way], dtype=np.int64)
        for rollout in self.under_way:
            state[f"under_way/{rollout.start}/frame"] = rollout.frame
            state |= {f"under_way/{rollout.start}/predicted/{key}": said for key, said in rollout.predicted.items()}
        return state | {f"watch/{name}": value for name, value in self.watch.get_state().items()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on as the one that gave this state."""
        methods = tuple(self.errors)
        self.n, self.learning = int(state["n"]), float(state["learning"])
        self.rows, self.rollouts = _rows("rows", FrameRow, state), _rows("rollouts", RolloutRow, state)
        self.errors = {name: state[f"errors/{name}"] for name in methods}
        self.seconds = {name: float(state[f"seconds/{name}"]) for name in methods}
        self.stills = {}
        for name in ("best", "worst", "last"):
            (row,) = _rows(f"stills/{name}/row", FrameRow, state)
            pictures = (state[f"stills/{name}/{part}"] for part in ("last", "frame", "predicted"))
            self.stills[name] = Still(row, *pictures)
        self.watch.set_state(
            {name.removeprefix("watch/"): value for name, value in state.items() if name.startswith("watch/")}
        )
        self.under_way = [
            Rollout(
                start,
                state[f"under_way/{start}/frame"],
                {name: state[f"under_way/{start}/predicted/{name}"] for name in methods},
            )
            for start in state["under_way"].tolist()
        ]


def _columns(name: str, kind: type[Row], rows: Iterable[Row]) -> Result:
    """Return rows as an array per field."""
    rows = list(rows)
    return {f"{name}/{field}": np.array([row[k] for row in rows]) for k, field in enumerate(kind._fields)}


def _rows(name: str, kind: type[Row], state: Mapping[str, NDArray[Any]]) -> list[Row]:
    """Return the rows that `_columns` took apart."""
    columns = [state[f"{name}/{field}"].tolist() for field in kind._fields]
    return [kind(*values) for values in zip(*columns, strict=True)]
