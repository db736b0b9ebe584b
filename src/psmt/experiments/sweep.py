"""Hyper-parameter sweep: how well frames come back from the embedding, by atoms M and window H (Table 1, Fig. 2)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psmt.engines import engine_for
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import mse
from psmt.experiments.codes import code_film, slice_codes, unpack_codes
from psmt.experiments.reconstruction import components_for, through_embedding
from psmt.experiments.running.tasks import Result, Task, clear_stale, on_device, stages
from psmt.experiments.tables import to_csv
from psmt.files import writing
from psmt.types import Progress, silent
from psmt.validation import check_count, check_real, check_series

__all__ = [
    "Combination",
    "Row",
    "Segment",
    "SweepResult",
    "SweepSettings",
    "reconstruct_window",
    "sweep",
    "window_tasks",
    "write_sweep",
]

Array = NDArray[np.float64]

TRIMMED = 0.25
"""Share of the errors that is left out at each end of Table 1."""


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """What is swept, and what is held fixed; the defaults are the paper's sizes.

    Parameters
    ----------
    n_atoms : tuple of int
        Sizes M of the dictionary.
    ratios : tuple of float
        Sizes of the window, as multiples of M.
    steps_per_window : int
        A window begins each H // steps_per_window frames; 4 is the paper's overlap of 3/4.
    n_components : int, optional
        f; None is a quarter of the atoms. Windows of a smaller rank have that many.
    alpha, lam : float
        Price of activity in layer 1 and in step 7.
    max_epochs : int
        Passes over the film that a dictionary is learned in, at the most.
    seed : int

    Examples
    --------
    >>> SweepSettings().windows(512)
    (1024, 1280, 1536)
    >>> SweepSettings.quick().n_atoms
    (64, 128)
    """

    n_atoms: tuple[int, ...] = (512, 1024, 2048)
    ratios: tuple[float, ...] = (2.0, 2.5, 3.0)
    steps_per_window: int = 4
    n_components: int | None = None
    alpha: float = 1.0
    lam: float = 0.1
    max_epochs: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.n_atoms or not self.ratios:
            raise ValueError(f"n_atoms={self.n_atoms} and ratios={self.ratios} must name at least one size each")
        for size in self.n_atoms:
            check_count("n_atoms", size)
        for ratio in self.ratios:
            check_real("ratios", ratio, open_bound=True)
        check_count("steps_per_window", self.steps_per_window)
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        check_real("alpha", self.alpha, open_bound=True)
        check_real("lam", self.lam)
        check_count("max_epochs", self.max_epochs)
        check_count("seed", self.seed, minimum=0)
        smallest = min(window for size in self.n_atoms for window in self.windows(size))
        check_count("window", smallest, minimum=max(3, self.steps_per_window))

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a few hundred frames, less than a minute."""
        return cls(n_atoms=(64, 128))

    def windows(self, n_atoms: int) -> tuple[int, ...]:
        """Sizes H of the window for one M."""
        return tuple(int(ratio * n_atoms) for ratio in self.ratios)

    def segments(self, window: int, n_frames: int) -> list[tuple[int, int]]:
        """First frame of each window in a film, and the one after its last."""
        step = window // self.steps_per_window
        return [(start, start + window) for start in range(0, n_frames - window + 1, step)]

    def components(self, n_atoms: int) -> int:
        """f for one M."""
        return components_for(n_atoms, self.n_components)


class Row(NamedTuple):
    """One line of sweep.csv."""

    n_atoms: int
    window: int
    segment: int
    start: int
    stop: int
    frame: int
    mse: float


class Segment(NamedTuple):
    """One window of one combination, as Fig. 2 shows it."""

    n_atoms: int
    window: int
    segment: int
    start: int
    stop: int
    lower: float
    """First quartile of the MSE."""
    median: float
    upper: float
    """Third quartile."""


class Combination(NamedTuple):
    """One (M, H), as Table 1 shows it; without figures where the film is too short for it."""

    n_atoms: int
    window: int
    n_segments: int = 0
    trimmed_mean: float = float("nan")
    trimmed_std: float = float("nan")
    mean: float = float("nan")
    std: float = float("nan")
    coding_mean: float = float("nan")
    """Mean MSE of layer 1 alone, over the same frames."""
    missing: str | None = None
    """Why there are no figures, with the frames that are there and those that are needed; None where there are."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """Errors of all windows, and the tables made from them."""

    settings: SweepSettings
    n_frames: int
    errors: Mapping[tuple[int, int], Array]
    """MSE (n_segments, H) by (M, H), of the combinations that the film is long enough for."""
    coding_errors: Mapping[tuple[int, int], Array]
    """The same for layer 1 alone."""

    def rows(self) -> Iterator[Row]:
        """Lines of sweep.csv: one per combination, window and frame."""
        for (n_atoms, window), errors in self.errors.items():
            places = self.settings.segments(window, self.n_frames)
            for segment, ((start, stop), values) in enumerate(zip(places, errors.tolist(), strict=True)):
                for frame, value in enumerate(values, start=start):
                    yield Row(n_atoms, window, segment, start, stop, frame, value)

    def table(self) -> list[Combination]:
        """Mean and standard deviation of the errors by (M, H): Table 1, the missing combinations included."""
        return [
            self._combination(n_atoms, window)
            for n_atoms in self.settings.n_atoms
            for window in self.settings.windows(n_atoms)
        ]

    def segments(self) -> list[Segment]:
        """Median and quartiles of the errors by window: Fig. 2."""
        return [
            Segment(n_atoms, window, segment, start, stop, *np.quantile(values, (0.25, 0.5, 0.75)).tolist())
            for (n_atoms, window), errors in self.errors.items()
            for segment, ((start, stop), values) in enumerate(
                zip(self.settings.segments(window, self.n_frames), errors, strict=True)
            )
        ]

    def _combination(self, n_atoms: int, window: int) -> Combination:
        if (n_atoms, window) not in self.errors:
            reason = f"the film has {self.n_frames} frames, the window needs {window}"
            return Combination(n_atoms=n_atoms, window=window, missing=reason)
        errors = self.errors[n_atoms, window]
        ordered = np.sort(errors, axis=None)
        cut = int(TRIMMED * ordered.size)
        inner = ordered[cut : ordered.size - cut]
        return Combination(
            n_atoms=n_atoms,
            window=window,
            n_segments=len(errors),
            trimmed_mean=float(inner.mean()),
            trimmed_std=float(inner.std()),
            mean=float(errors.mean()),
            std=float(errors.std()),
            coding_mean=float(self.coding_errors[n_atoms, window].mean()),
        )


def sweep(
    patches: ArrayLike,
    folder: str | os.PathLike[str],
    *,
    settings: SweepSettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
    force: bool = False,
    device: str = "cpu",
) -> SweepResult:
    """Reconstruction errors of a film's patches (time, n_features) for all combinations of M and H.

    One dictionary per M is learned from the whole film; windows differ in P only.

    Parameters
    ----------
    folder : path
        Where tasks are kept.
    executor, progress, force
        As for `run_tasks`.
    device : str
        Where to compute.

    Raises
    ------
    NotEnoughFramesError
        When the film is too short for every combination. Where it is too short for some, the table says so.
    """
    settings = SweepSettings() if settings is None else settings
    film = np.ascontiguousarray(check_series(patches, name="patches"))
    sizes = [size for size in settings.n_atoms if min(settings.windows(size)) <= len(film)]
    if not sizes:
        needed = min(window for size in settings.n_atoms for window in settings.windows(size))
        raise NotEnoughFramesError(
            f"the film has {len(film)} frames, but the smallest window of n_atoms={settings.n_atoms} needs {needed}; "
            f"use a longer film, or n_atoms <= {int(len(film) / min(settings.ratios))}"
        )
    # The largest first: nobody then waits for a long task that was begun last.
    sizes.sort(reverse=True)
    run = stages("sweep", folder, executor=executor, progress=progress, force=force)
    coded = code_film(film, sizes, settings, run, device)
    tasks = [task for dictionary, codes in coded for task in window_tasks(film, dictionary, codes, settings, device)]
    results = run([task for _, task in tasks], "windows")
    grouped: dict[tuple[int, int], list[Array]] = {}
    for (combination, _), result in zip(tasks, results, strict=True):
        grouped.setdefault(combination, []).append(result["mse"])
    alone = {
        len(dictionary): mse(unpack_codes(**codes, n_atoms=len(dictionary)) @ dictionary, film)
        for dictionary, codes in coded
    }
    order = [
        (size, window) for size in settings.n_atoms for window in settings.windows(size) if (size, window) in grouped
    ]
    return SweepResult(
        settings=settings,
        n_frames=len(film),
        errors={key: np.array(grouped[key]) for key in order},
        coding_errors={
            (size, window): np.array([alone[size][start:stop] for start, stop in settings.segments(window, len(film))])
            for size, window in order
        },
    )


def write_sweep(result: SweepResult, path: str | os.PathLike[str]) -> None:
    """Write sweep.csv, one line per combination, window and frame."""
    path = Path(path)
    clear_stale(path.parent, path.name)
    with writing(path) as file:
        file.write(to_csv(Row._fields, result.rows()))


# Tasks


def window_tasks(
    patches: Array, dictionary: Array, codes: Result, settings: SweepSettings, device: str = "cpu"
) -> Iterator[tuple[tuple[int, int], Task]]:
    """Tasks of all windows that fit into the patches (time, n_features) with packed codes, each with its (M, H)."""
    n_atoms = len(dictionary)
    for window in sorted(settings.windows(n_atoms), reverse=True):
        for segment, (start, stop) in enumerate(settings.segments(window, len(patches))):
            inputs = {
                "patches": patches[start:stop],
                "dictionary": dictionary,
                **slice_codes(codes, start, stop),
                "n_components": settings.components(n_atoms),
                "lam": settings.lam,
            }
            name = f"sweep-M{n_atoms:04d}-H{window:05d}-w{segment:03d}"
            yield (n_atoms, window), Task(name, reconstruct_window, inputs | on_device(device))


def reconstruct_window(
    *,
    patches: Array,
    dictionary: Array,
    values: Array,
    columns: NDArray[Any],
    offsets: NDArray[Any],
    n_components: int,
    lam: float,
    device: str = "cpu",
) -> Result:
    """``mse`` (window,) of the patches (window, n_features) through the window's embedding and back; ``rank`` of V.

    Their packed codes come with them, see `psmt.experiments.codes`.
    """
    codes = engine_for(device).dense(unpack_codes(values, columns, offsets, len(dictionary)))
    frames, rank = through_embedding(codes, dictionary, n_components=n_components, lam=lam, device=device)
    return {"mse": mse(frames, patches), "rank": np.array(rank)}
