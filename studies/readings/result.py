"""What each reading gives, and whether that is the paper's pattern and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from psmt.evaluation import Interval, log_mse, mean_interval, trimmed
from psmt.experiments.table_1 import MARGIN, PAPER_SIZE, compare
from psmt.report import Verdict, all_hold, judged
from psmt.types import Array
from studies.readings.reading import Reading
from studies.readings.settings import ReadingsSettings
from studies.readings.tasks import METHODS

PAPER_LOGS = (-7.12, -2.18)
"""Mean log MSE of PSMT in the two phases of the paper's Fig. 4."""

ORDER = (("psmt", "baseline2"), ("baseline2", "baseline1"))
"""Who has the smaller error in the paper's Fig. 4."""

REFERENCES = (("psmt", "copy"), ("psmt", "mean"))
"""What the paper does not ask: PSMT against what knows no dynamics."""

Tabled: TypeAlias = Mapping[tuple[int, int], Array]
"""Table 1: MSE (n_windows, n_scored) by (M, H)."""


class Predicted(NamedTuple):
    """Fig. 4: MSE (n_starts, n_methods, horizon)."""

    vs_code: Array
    vs_frame: Array


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one reading gives."""

    reading: Reading
    means: Mapping[tuple[int, int], float]
    """Trimmed mean MSE of Table 1 by (M, H), all over the same frames."""
    atoms: Mapping[str, Interval]
    """Logarithm of the error with the most atoms over that with the fewest, by H / M."""
    frames: Mapping[str, Interval]
    """The same for the longest and the shortest window, by M."""
    logs: Mapping[str, float]
    """Mean log MSE vs code by method."""
    logs_vs_frame: Mapping[str, float]
    differences: Mapping[tuple[str, str], Interval]
    """Of the mean log MSE vs code of two methods, over the starts."""

    @property
    def more_atoms(self) -> Verdict:
        """Table 1 from top to bottom."""
        return all_hold([judged(change, margin=MARGIN) for change in self.atoms.values()])

    @property
    def more_frames(self) -> Verdict:
        """Table 1 from left to right."""
        return all_hold([judged(change, margin=MARGIN) for change in self.frames.values()])

    @property
    def table(self) -> Verdict:
        """The pattern of Table 1."""
        return all_hold([self.more_atoms, self.more_frames])

    @property
    def table_size(self) -> bool:
        """Whether all errors of Table 1 lie between the least and the largest of the paper's."""
        low, high = PAPER_SIZE
        return low <= min(self.means.values()) and max(self.means.values()) <= high

    def smaller(self, pair: tuple[str, str]) -> Verdict:
        """Whether the first of two methods has the smaller error."""
        return judged(self.differences[pair], margin=MARGIN)

    @property
    def order(self) -> Verdict:
        """The pattern of Fig. 4: PSMT < Baseline 2 < Baseline 1."""
        return all_hold([self.smaller(pair) for pair in ORDER])

    @property
    def prediction_size(self) -> bool:
        """Whether PSMT's mean log MSE lies between those of the paper's two phases."""
        low, high = PAPER_LOGS
        return low <= self.logs["psmt"] <= high


@dataclass(frozen=True, kw_only=True)
class ReadingsResult:
    """Errors under each reading."""

    settings: ReadingsSettings
    n_frames: int
    tables: Mapping[Reading, Tabled]
    predictions: Mapping[Reading, Predicted]

    @cached_property
    def found(self) -> list[Found]:
        """What each reading gives, in the order of the readings."""
        return [self._found(reading) for reading in self.tables]

    def rows(self) -> Iterator[dict[str, object]]:
        """Lines of readings.csv: one per reading."""
        for found in self.found:
            reading = found.reading
            yield {
                "reading": reading.name,
                "lam": reading.lam,
                "components": "all" if reading.components is None else reading.components,
                "dictionary_table_1": reading.learned_from("table"),
                "dictionary_fig_4": reading.learned_from("prediction"),
                "half_stencils": reading.half_stencils,
                "centred": reading.centred,
                "scored": reading.scored,
                **{f"mse_M{size}_H{window}": mean for (size, window), mean in found.means.items()},
                **_spelled("atoms", found.atoms),
                **_spelled("frames", found.frames),
                "more_atoms": found.more_atoms,
                "more_frames": found.more_frames,
                "table_1_size": found.table_size,
                **{f"log_mse_vs_code_{method}": value for method, value in found.logs.items()},
                **{f"log_mse_vs_frame_{method}": value for method, value in found.logs_vs_frame.items()},
                **_spelled("difference", {f"{one}-{other}": own for (one, other), own in found.differences.items()}),
                **{f"{one}_below_{other}": found.smaller((one, other)) for one, other in found.differences},
                "fig_4_size": found.prediction_size,
            }

    def _found(self, reading: Reading) -> Found:
        table = {size: errors[:, -self.settings.n_inside :] for size, errors in self.tables[reading].items()}
        predicted = self.predictions[reading]
        code, frame = (log_mse(errors).mean(axis=2) for errors in predicted)
        by_method = dict(zip(METHODS, code.T, strict=True))
        sizes, ratios = self.settings.n_atoms, self.settings.ratios
        ends, (before, after) = self.settings.ends(self.n_frames), self._scored(reading)
        places = [(end - before, end + after) for end in ends]

        def change(first: tuple[int, int], last: tuple[int, int]) -> Interval:
            return compare(table[first], places, table[last], places, n_frames=self.n_frames)

        windows = {size: self.settings.windows(size) for size in sizes}
        few, many = sizes[0], sizes[-1]
        return Found(
            reading=reading,
            means={size: float(trimmed(errors).mean()) for size, errors in sorted(table.items())},
            atoms={
                f"H={ratio:g}M": change((few, short), (many, long))
                for ratio, short, long in zip(ratios, windows[few], windows[many], strict=True)
                if few != many
            },
            frames={
                f"M={size}": change((size, windows[size][0]), (size, windows[size][-1]))
                for size in sizes
                if len(ratios) > 1
            },
            logs={method: float(own.mean()) for method, own in by_method.items()},
            logs_vs_frame={method: float(own.mean()) for method, own in zip(METHODS, frame.T, strict=True)},
            differences={
                (one, other): mean_interval(by_method[one] - by_method[other]) for one, other in (*ORDER, *REFERENCES)
            },
        )

    def _scored(self, reading: Reading) -> tuple[int, int]:
        """How many frames before and after the end of a window are scored."""
        return (self.settings.n_inside, 0) if reading.scored == "inside" else (0, self.settings.n_after)


def _spelled(what: str, intervals: Mapping[str, Interval]) -> dict[str, float]:
    """Means and ends of intervals as columns."""
    return {
        f"{what}_{name}{end}": value
        for name, interval in intervals.items()
        for end, value in zip(("", "_low", "_high"), interval, strict=True)
    }
