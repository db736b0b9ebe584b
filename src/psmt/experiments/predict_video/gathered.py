"""What is kept of a film while it is predicted, in memory, in files and as arrays; memory does not grow with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psmt.evaluation import FrameRow, Rollout, RolloutRow, Step
from psmt.experiments.predict_video.events import EventWatch
from psmt.experiments.predict_video.lines import Lines, from_columns, to_columns
from psmt.experiments.predict_video.result import Still
from psmt.persistence.model_file import part
from psmt.types import Result


class Gathered:
    """Lines of all steps, pictures of a few, and the rollouts under way.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the frames.
    methods : sequence of str
        Names of what is compared.
    watch : EventWatch
        What looks for events.
    rows, rollouts : Lines
        Where the lines of all steps go.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        methods: Sequence[str],
        watch: EventWatch,
        rows: Lines[FrameRow],
        rollouts: Lines[RolloutRow],
    ) -> None:
        self.n = 0
        """Steps so far."""
        self.rows, self.rollouts = rows, rollouts
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
        self.rows.add(step.rows.values())
        self.rollouts.add(step.rollouts)
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

    def of(self, method: str) -> Iterator[FrameRow]:
        """Lines of one method, in order."""
        return (row for row in self.rows if row.method == method)

    def get_state(self) -> Result:
        """All of it as arrays."""
        state: Result = {"n": np.array(self.n), "learning": np.array(self.learning)}
        for name, lines in (("rows", self.rows), ("rollouts", self.rollouts)):
            state |= {f"{name}/{key}": value for key, value in lines.get_state().items()}
        for name, total in self.errors.items():
            state |= {f"errors/{name}": total, f"seconds/{name}": np.array(self.seconds[name])}
        for name, still in self.stills.items():
            state |= to_columns(f"stills/{name}/row", FrameRow, [still.row])
            state |= {f"stills/{name}/{key}": getattr(still, key) for key in ("last", "frame", "predicted")}
        state["under_way"] = np.array([rollout.start for rollout in self.under_way], dtype=np.int64)
        for rollout in self.under_way:
            state[f"under_way/{rollout.start}/frame"] = rollout.frame
            state |= {f"under_way/{rollout.start}/predicted/{key}": said for key, said in rollout.predicted.items()}
        return state | {f"watch/{name}": value for name, value in self.watch.get_state().items()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on as the one that gave this state."""
        methods = tuple(self.errors)
        self.n, self.learning = int(state["n"]), float(state["learning"])
        self.rows.set_state(part(state, "rows/"))
        self.rollouts.set_state(part(state, "rollouts/"))
        self.errors = {name: state[f"errors/{name}"] for name in methods}
        self.seconds = {name: float(state[f"seconds/{name}"]) for name in methods}
        self.stills = {}
        for name in ("best", "worst", "last"):
            (row,) = from_columns(f"stills/{name}/row", FrameRow, state)
            pictures = (state[f"stills/{name}/{key}"] for key in ("last", "frame", "predicted"))
            self.stills[name] = Still(row, *pictures)
        self.watch.set_state(part(state, "watch/"))
        self.under_way = [
            Rollout(
                start,
                state[f"under_way/{start}/frame"],
                {name: state[f"under_way/{start}/predicted/{name}"] for name in methods},
            )
            for start in state["under_way"].tolist()
        ]
