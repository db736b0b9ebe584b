"""Run `psmt sweep`: errors (by number of atoms M, window length H and penalty λ), Table 1, and the evidence."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psmt.evaluation import Interval, trimmed
from psmt.evaluation.null_models import NULL_NAMES, draw_noise
from psmt.experiments.film_tasks import Coded, code_film, pack_codes, slice_codes, unpack_codes, window_task
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.table_1 import MARGIN, NOTHING, PAPER, compare
from psmt.pipeline.run import Run
from psmt.report.claim import TIE, Evidence, error_ratio_evidence
from psmt.report.numbers import error
from psmt.types import Array, Ints
from psmt.utils.disk_series import blocks
from psmt.utils.validation import check_film

COLUMNS = ("lam", "n_atoms", "window", "segment", "start", "stop", "frame", "mse")
"""Columns of sweep.csv."""

Errors = dict[tuple[float, int, int], Array]
"""Mean squared errors (n_windows, H) by (λ, M, H): penalty, number of atoms, and window length."""


def sweep(values: ArrayLike, settings: SweepSettings, run: Run) -> "SweepResult":
    """Return the reconstruction errors of patches of a film, or of a series (time, n_features), for all settings.

    A dictionary is learned from the whole film for each number of atoms. Each window has its own embedding. Windows for
    which the film is too short are left out. `NotEnoughFramesError` is raised if no window is left.
    """
    film = check_film(values)
    settings.check(len(film))
    run = replace(run, name="sweep")
    sizes = [size for size in settings.n_atoms if min(settings.windows(size)) <= len(film)]
    # The largest first, so that no long task starts last.
    sizes.sort(reverse=True)
    coded = code_film(film, sizes, settings, run)
    errors = _errors(film, coded, settings, run, settings.segments, "windows")
    nulls = _null_errors(film, coded, settings, run) if settings.null_windows else {}
    return SweepResult(
        settings=settings,
        n_frames=len(film),
        errors=errors,
        null_errors=nulls,
        empty_error=float(trimmed(np.concatenate([np.mean(block**2, axis=1) for block in blocks(film)])).mean()),
    )


def _null_errors(film: Array, coded: Sequence[Coded], settings: SweepSettings, run: Run) -> dict[str, Errors]:
    """Return the errors on both null models: shuffled frames, and noise with the spatial spectrum of the film."""
    run, rng = replace(run, name="sweep-null"), np.random.default_rng(settings.seed)
    order = rng.permutation(len(film))
    noise = draw_noise(film, rng)
    noise_coded = code_film(noise, [len(dictionary) for dictionary, _ in coded], settings, run)
    how = settings, run, settings.null_segments, "windows of null models"
    return {"shuffled": _errors(film, coded, *how, order), "noise": _errors(noise, noise_coded, *how)}


def _errors(
    film: Array,
    coded: Sequence[Coded],
    settings: SweepSettings,
    run: Run,
    places: Callable[[int, int], Sequence[tuple[int, int]]],
    stage: str,
    order: Ints | None = None,
) -> Errors:
    """Return the errors of all windows of a film. If `order` is given, its frames are permuted first.

    ``places(window, n_frames)`` returns the (start, stop) of all windows of the length `window`.
    """
    tasks, sizes = [], []
    for dictionary, codes in coded:
        n_atoms = len(dictionary)
        for window in sorted(settings.windows(n_atoms), reverse=True):
            for k, (start, stop) in enumerate(places(window, len(film)) if window <= len(film) else ()):
                if order is None:
                    patches, own = film[start:stop], slice_codes(codes, start, stop)
                else:
                    rows = order[start:stop]
                    patches, own = film[rows], pack_codes(unpack_codes(codes, n_atoms)[rows])
                name = f"{run.name}-M{n_atoms:04d}-H{window:05d}-w{k:03d}"
                inputs = {"patches": patches, "dictionary": dictionary, "codes": own}
                tasks.append(window_task(name, inputs, settings.components(n_atoms), settings, run))
                sizes.append((n_atoms, window))
    found: dict[tuple[int, int], list[Array]] = {}
    for size, result in zip(sizes, run.tasks(tasks, stage), strict=True):
        found.setdefault(size, []).append(result["mse"])
    return {
        (lam, size, window): np.array(found[size, window])[:, i]
        for i, lam in enumerate(settings.lam)
        for size in settings.n_atoms
        for window in settings.windows(size)
        if (size, window) in found
    }


class Combination(NamedTuple):
    """An entry of Table 1: mean errors for one λ, number of atoms and window length. NaN if the film is too short."""

    lam: float
    n_atoms: int
    window: int
    n_segments: int = 0
    trimmed_mean: float = float("nan")
    trimmed_std: float = float("nan")
    mean: float = float("nan")
    std: float = float("nan")
    missing: str | None = None
    """Why there are no errors, with the film's number of frames and the number needed. None if there are errors."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """Reconstruction errors of all windows, on the film and on its null models."""

    settings: SweepSettings
    n_frames: int
    errors: Errors
    """MSE (n_segments, H) by (λ, number of atoms M, window length H), for sizes that the film is long enough for."""
    null_errors: Mapping[str, Errors] = field(default_factory=dict)
    """Errors on each null model (see `psmt.evaluation.null_models`), in fewer windows than on the film."""
    empty_error: float = float("inf")
    """Trimmed mean of the MSE if all codes are zero. It is 1 for standardised patches."""

    def rows(self) -> Iterator[tuple[float, ...]]:
        """Yield the rows of sweep.csv (see `COLUMNS`): one per frame, for each λ, number of atoms and window."""
        for (lam, n_atoms, window), errors in self.errors.items():
            places = self.settings.segments(window, self.n_frames)
            for segment, ((start, stop), values) in enumerate(zip(places, errors, strict=True)):
                for frame, value in enumerate(values.tolist(), start=start):
                    yield lam, n_atoms, window, segment, start, stop, frame, value

    def table(self) -> list[Combination]:
        """Return the entries of Table 1, also those without errors, for each λ, number of atoms and window length."""
        return [
            self._combination(lam, n_atoms, window)
            for lam in self.settings.lam
            for n_atoms in self.settings.n_atoms
            for window in self.settings.windows(n_atoms)
        ]

    @cached_property
    def means(self) -> dict[float, list[float]]:
        """For each λ, the trimmed mean MSE of each number of atoms and window length that fit the film."""
        known = [entry for entry in self.table() if not entry.missing]
        return {lam: [entry.trimmed_mean for entry in known if entry.lam == lam] for lam in self.settings.lam}

    @cached_property
    def decisive_lam(self) -> float | None:
        """The penalty λ that decides the claims: the geometric mean of its errors is nearest to that of the paper.

        Penalties at which nothing is reconstructed (see `NOTHING`) are left out. It is None if this leaves no penalty.
        """
        paper, tiny = np.mean(np.log([mean for mean, _ in PAPER.values()])), np.finfo(float).tiny
        distances = {
            lam: float(abs(np.mean(np.log(np.maximum(own, tiny))) - paper))
            for lam, own in self.means.items()
            if own and min(own) < NOTHING * self.empty_error
        }
        return min(distances, key=distances.__getitem__, default=None)

    @cached_property
    def evidence(self) -> dict[str, dict[float, list[Evidence]]]:
        """Evidence by claim and λ: a comparison in each column of Table 1 (more atoms) or each row (more frames)."""
        chains: dict[tuple[str, float, str], dict[str, Combination]] = {}
        ratios = self.settings.ratios
        for k, entry in enumerate(self.table()):
            if not entry.missing:
                column, atoms = f"H = {ratios[k % len(ratios)]:g} M", f"M = {entry.n_atoms:,}"
                chains.setdefault(("more_atoms", entry.lam, column), {})[atoms] = entry
                chains.setdefault(("more_frames", entry.lam, atoms), {})[f"H = {entry.window:,}"] = entry
        found: dict[str, dict[float, list[Evidence]]] = {"more_atoms": {}, "more_frames": {}}
        for (claim, lam, head), entries in chains.items():
            if len(entries) > 1:
                found[claim].setdefault(lam, []).append(self._compare(f"λ = {lam:g}, {head}", entries))
        return found

    def _compare(self, name: str, entries: Mapping[str, Combination]) -> Evidence:
        """Return evidence: the log ratio of the trimmed mean of the last entry to that of the first."""
        first, *_, last = entries.values()
        means = [entry.trimmed_mean for entry in entries.values()]
        steps = " → ".join(f"{error(mean)} ({size})" for size, mean in zip(entries, means, strict=True))
        if any(later > (1 + TIE) * earlier for earlier, later in pairwise(means)):
            steps += ", not lower at every step"
        if (last.mean < first.mean) != (means[-1] < means[0]):
            steps += f", but the untrimmed mean goes from {error(first.mean)} to {error(last.mean)}"
        empty = max(means) >= NOTHING * self.empty_error
        return error_ratio_evidence(
            name=name,
            statistic=self._change(first, last),
            nulls={NULL_NAMES[null]: self._change(first, last, null) for null in self.null_errors},
            n=self.n_frames,
            margin=MARGIN,
            too_few="nothing is reconstructed: errors are as large as that of an empty picture" if empty else "",
            details=f", MSE {steps}",
        )

    def _change(self, first: Combination, last: Combination, null: str = "") -> Interval:
        errors = self.null_errors[null] if null else self.errors
        segments = self.settings.null_segments if null else self.settings.segments
        before, after = ((errors[own[:3]], segments(own.window, self.n_frames)) for own in (first, last))
        return compare(*before, *after, n_frames=self.n_frames)

    def _combination(self, lam: float, n_atoms: int, window: int) -> Combination:
        if (lam, n_atoms, window) not in self.errors:
            reason = f"the film has {self.n_frames} frames, the window needs {window}"
            return Combination(lam, n_atoms, window, missing=reason)
        errors = self.errors[lam, n_atoms, window]
        inner = trimmed(errors)
        means = float(inner.mean()), float(inner.std()), float(errors.mean()), float(errors.std())
        return Combination(lam, n_atoms, window, len(errors), *means)
