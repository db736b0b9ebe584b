"""Results of each reading, and their comparison with the pattern and the size of the paper's results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from psmt.evaluation import Interval, log_mse, mean_interval, trimmed
from psmt.experiments.table_1 import MARGIN, PAPER_SIZE, compare
from psmt.report.claim import Evidence, Verdict, all_hold, error_ratio_evidence
from psmt.types import Array
from studies.readings.reading import Reading
from studies.readings.settings import ReadingsSettings
from studies.readings.tasks import METHODS

PAPER_LOGS = (-7.12, -2.18)
"""Mean log MSE of PSMT in the two phases of the paper's Fig. 4."""

ORDER = (("psmt", "baseline2"), ("baseline2", "baseline1"))
"""Pairs of methods in the paper's Fig. 4. The first of a pair has the smaller error there."""

REFERENCES = (("psmt", "copy"), ("psmt", "mean"))
"""Pairs of PSMT and a prediction without dynamics. The paper does not compare them."""

SHORT = {"psmt": "PSMT", "baseline2": "B 2", "baseline1": "B 1", "copy": "copying", "mean": "mean"}
"""Short names of the methods."""

Tabled: TypeAlias = Mapping[tuple[int, int], Array]
"""Table 1: MSE (n_windows, n_scored) by (M, H)."""


class Predicted(NamedTuple):
    """Errors of Fig. 4, each an MSE (n_starts, n_methods, horizon)."""

    vs_code: Array
    vs_frame: Array


@dataclass(frozen=True, kw_only=True)
class ReadingResult:
    """Results of one reading."""

    reading: Reading
    means: Mapping[tuple[int, int], float]
    """Trimmed mean MSE of Table 1 by (M, H). All are means over the same frames."""
    atoms: Sequence[Evidence]
    """Log ratio of the errors with the most and the fewest atoms, for each H / M."""
    frames: Sequence[Evidence]
    """Log ratio of the errors with the longest and the shortest window, for each M."""
    logs: Mapping[str, float]
    """Mean log MSE vs code by method."""
    logs_vs_frame: Mapping[str, float]
    differences: Mapping[tuple[str, str], Evidence]
    """Difference of the mean log MSE vs code of two methods, over the starts."""

    @property
    def more_atoms(self) -> Verdict:
        """Whether more atoms help: Table 1 from top to bottom."""
        return all_hold([own.as_measured.verdict for own in self.atoms])

    @property
    def more_frames(self) -> Verdict:
        """Whether more frames help: Table 1 from left to right."""
        return all_hold([own.as_measured.verdict for own in self.frames])

    @property
    def table(self) -> Verdict:
        """Verdict on the pattern of Table 1: more atoms and more frames reduce the error."""
        return all_hold([self.more_atoms, self.more_frames])

    @property
    def table_size(self) -> bool:
        """Whether all errors of Table 1 lie between the smallest and the largest of the paper."""
        low, high = PAPER_SIZE
        return low <= min(self.means.values()) and max(self.means.values()) <= high

    def smaller(self, pair: tuple[str, str]) -> Verdict:
        """Whether the first of two methods has the smaller error."""
        return self.differences[pair].as_measured.verdict

    @property
    def order(self) -> Verdict:
        """Verdict on the pattern of Fig. 4: PSMT < Baseline 2 < Baseline 1."""
        return all_hold([self.smaller(pair) for pair in ORDER])

    @property
    def prediction_size(self) -> bool:
        """Whether the mean log MSE of PSMT lies between the values of the two phases in the paper."""
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
    def by_reading(self) -> list[ReadingResult]:
        """Results of each reading, in the order of the readings."""
        return [self._of(reading) for reading in self.tables]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield the lines of readings.csv, one per reading."""
        for own in self.by_reading:
            reading = own.reading
            yield {
                "reading": reading.name,
                "lam": reading.lam,
                "components": "all" if reading.components is None else reading.components,
                "dictionary_table_1": reading.learned_from("table"),
                "dictionary_fig_4": reading.learned_from("prediction"),
                "half_stencils": reading.half_stencils,
                "centred": reading.centred,
                "scored": reading.scored,
                **{f"mse_M{size}_H{window}": mean for (size, window), mean in own.means.items()},
                **_columns("atoms", {change.name: change for change in own.atoms}),
                **_columns("frames", {change.name: change for change in own.frames}),
                "more_atoms": own.more_atoms,
                "more_frames": own.more_frames,
                "table_1_size": own.table_size,
                **{f"log_mse_vs_code_{method}": value for method, value in own.logs.items()},
                **{f"log_mse_vs_frame_{method}": value for method, value in own.logs_vs_frame.items()},
                **_columns("difference", {"-".join(pair): gap for pair, gap in own.differences.items()}),
                **{"_below_".join(pair): gap.as_measured.verdict for pair, gap in own.differences.items()},
                "fig_4_size": own.prediction_size,
            }

    def _of(self, reading: Reading) -> ReadingResult:
        table = {size: errors[:, -self.settings.n_inside :] for size, errors in self.tables[reading].items()}
        predicted = self.predictions[reading]
        code, frame = (log_mse(errors).mean(axis=2) for errors in predicted)
        by_method = dict(zip(METHODS, code.T, strict=True))
        sizes, ratios = self.settings.n_atoms, self.settings.ratios
        ends, (before, after) = self.settings.ends(self.n_frames), self._scored(reading)
        places = [(end - before, end + after) for end in ends]

        def change(name: str, first: tuple[int, int], last: tuple[int, int]) -> Evidence:
            return _evidence(name, compare(table[first], places, table[last], places, n_frames=self.n_frames))

        windows = {size: self.settings.windows(size) for size in sizes}
        few, many = sizes[0], sizes[-1]
        return ReadingResult(
            reading=reading,
            means={size: float(trimmed(errors).mean()) for size, errors in sorted(table.items())},
            atoms=[
                change(f"H={ratio:g}M", (few, short), (many, long))
                for ratio, short, long in zip(ratios, windows[few], windows[many], strict=True)
                if few != many
            ],
            frames=[
                change(f"M={size}", (size, windows[size][0]), (size, windows[size][-1]))
                for size in sizes
                if len(ratios) > 1
            ],
            logs={method: float(own.mean()) for method, own in by_method.items()},
            logs_vs_frame={method: float(own.mean()) for method, own in zip(METHODS, frame.T, strict=True)},
            differences={
                (one, other): _evidence(
                    f"{SHORT[one]} − {SHORT[other]}", mean_interval(by_method[one] - by_method[other])
                )
                for one, other in (*ORDER, *REFERENCES)
            },
        )

    def _scored(self, reading: Reading) -> tuple[int, int]:
        """Return the numbers of scored frames before and after the end of a window."""
        return (self.settings.n_inside, 0) if reading.scored == "inside" else (0, self.settings.n_after)


def _evidence(name: str, interval: Interval) -> Evidence:
    """Logarithm of a ratio of errors, which should be below 0 by more than the margin."""
    return error_ratio_evidence(name=name, statistic=interval, margin=MARGIN)


def _columns(what: str, evidence: Mapping[str, Evidence]) -> dict[str, float]:
    """Return means and bounds as columns of readings.csv."""
    return {
        f"{what}_{name}{end}": value
        for name, own in evidence.items()
        for end, value in zip(("", "_low", "_high"), own.statistic, strict=True)
    }
