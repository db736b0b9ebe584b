"""Run all readings on one film: dictionaries, windows of Table 1, and starts of Fig. 4."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments.film_tasks import dictionary_task
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task, on_device
from psmt.series import Scaling
from psmt.types import Array, Result
from psmt.utils.validation import check_film
from studies.readings.reading import Dictionary, Exhibit, Reading
from studies.readings.result import Predicted, ReadingsResult, Tabled
from studies.readings.settings import ReadingsSettings
from studies.readings.tasks import predict_start, reconstruct_frames


class _Source(NamedTuple):
    """Size of a dictionary, and the frames that it is learned from."""

    n_atoms: int
    start: int
    stop: int


def read_paper(values: ArrayLike, settings: ReadingsSettings, run: Run) -> ReadingsResult:
    """Compute Table 1 and Fig. 4 under each reading, for patches of a film or a series (time, n_features).

    Raises
    ------
    NotEnoughFramesError
        If the film is too short for one of the windows.
    """
    film = check_film(values)
    settings.check(len(film))
    if settings.series:
        film = Scaling.of(film[: settings.starts(len(film))[0]]).standardise(film)
    work = _Work(film, settings, replace(run, name="readings"))
    return ReadingsResult(settings=settings, n_frames=len(film), tables=work.tables(), predictions=work.predictions())


@dataclass(frozen=True)
class _Work:
    """Tasks of all readings. Readings that share codes and embedding share tasks."""

    film: Array
    settings: ReadingsSettings
    run: Run

    def tables(self) -> dict[Reading, Tabled]:
        """Compute Table 1 for each reading."""
        settings = self.settings
        ends = settings.ends(len(self.film))
        # The largest tasks start first, so that no long task starts last.
        sizes = [(size, window) for size in sorted(settings.n_atoms, reverse=True) for window in settings.windows(size)]
        groups = _by_embedding(settings.readings, "table")
        places = [(group, *size, end) for size in sizes for end in ends for group in groups]
        learned = [
            self._source(group.learned_from("table"), size, end - window, end) for group, size, window, end in places
        ]
        dictionaries = self._dictionaries(learned)

        tasks = [
            Task(
                f"readings-M{size:04d}-H{window:05d}-t{end:05d}",
                reconstruct_frames,
                {
                    "patches": self.film[end - window : end + settings.n_after],
                    "dictionary": dictionaries[source],
                    "n_window": window,
                    "lam": groups[group],
                    **self._given(group, size),
                    **settings.departures.recovery,
                },
            )
            for (group, size, window, end), source in zip(places, learned, strict=True)
        ]
        found = dict(zip(places, self.run.tasks(tasks, "windows"), strict=True))
        return {
            reading: {
                (size, window): np.array(
                    [_row(found[group, size, window, end], groups[group], reading) for end in ends]
                )
                for size, window in sizes
            }
            for reading in settings.readings
            for group in [_group(reading, "table")]
        }

    def predictions(self) -> dict[Reading, Predicted]:
        """Compute the errors of Fig. 4 for each reading."""
        settings = self.settings
        starts, size, window = settings.starts(len(self.film)), settings.n_atoms[0], settings.window
        groups = _by_embedding(settings.readings, "prediction")
        places = [(group, start) for start in starts for group in groups]
        learned = [
            self._source(group.learned_from("prediction"), size, start - window, start) for group, start in places
        ]
        dictionaries = self._dictionaries(learned)

        tasks = [
            Task(
                f"readings-prediction-t{start:05d}",
                predict_start,
                {
                    "patches": self.film[start - window : start + settings.horizon + 1],
                    "dictionary": dictionaries[source],
                    "window": window,
                    "lam": groups[group],
                    **self._given(group, size),
                    **settings.departures.recovery,
                    "on_cut": settings.departures.on_cut,
                },
            )
            for (group, start), source in zip(places, learned, strict=True)
        ]
        found = dict(zip(places, self.run.tasks(tasks, "starts"), strict=True))
        return {
            reading: Predicted(
                *(
                    np.array([found[group, start][target][groups[group].index(reading.lam)] for start in starts])
                    for target in Predicted._fields
                )
            )
            for reading in settings.readings
            for group in [_group(reading, "prediction")]
        }

    def _source(self, learned_from: Dictionary, n_atoms: int, start: int, stop: int) -> _Source:
        """Return the size of the dictionary of a window, and the frames that it is learned from."""
        return {
            "film": _Source(n_atoms, 0, len(self.film)),
            "past": _Source(n_atoms, 0, stop),
            "window": _Source(n_atoms, start, stop),
        }[learned_from]

    def _dictionaries(self, learned: list[_Source]) -> dict[_Source, Array]:
        settings = self.settings
        wanted = list(dict.fromkeys(learned))
        tasks = [
            dictionary_task(
                self.film[start:stop],
                n_atoms=n_atoms,
                alpha=settings.alpha,
                max_epochs=settings.max_epochs,
                seed=settings.seed,
                device=self.run.device,
            )
            for n_atoms, start, stop in wanted
        ]
        results = self.run.tasks(tasks, "dictionaries")
        return {source: result["dictionary"] for source, result in zip(wanted, results, strict=True)}

    def _given(self, group: Reading, n_atoms: int) -> dict[str, Any]:
        """Return the parameters that depend on the reading. Both kinds of task have them."""
        return {
            "alpha": self.settings.alpha,
            "centred": group.centred,
            "half_stencils": group.half_stencils,
            "rank_tol": self.settings.departures.rank_tol,
            "n_components": group.n_components(n_atoms),
        } | on_device(self.run.device)


def _group(reading: Reading, exhibit: Exhibit) -> Reading:
    """Return the reading without λ and `scored`. Readings with equal results share codes and embedding."""
    return replace(reading, lam=0.0, scored="inside", dictionary=reading.learned_from(exhibit))


def _by_embedding(readings: list[Reading], exhibit: Exhibit) -> dict[Reading, tuple[float, ...]]:
    """Return the ascending λ of the readings that share codes and embedding, by their `_group`."""
    groups: dict[Reading, set[float]] = {}
    for reading in readings:
        groups.setdefault(_group(reading, exhibit), set()).add(reading.lam)
    return {group: tuple(sorted(lams)) for group, lams in groups.items()}


def _row(result: Result, lams: tuple[float, ...], reading: Reading) -> Array:
    """Return the errors (n_scored,) of one window under one reading, from a task that several readings share."""
    errors: Array = result[reading.scored][lams.index(reading.lam)]
    return errors
