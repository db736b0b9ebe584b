"""All experiments of the paper on one film, each at the largest size that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psmt.experiments import EXPERIMENTS, command_of, experiment_of
from psmt.experiments.contract import Chapter
from psmt.experiments.options import FilmOptions
from psmt.pipeline.run import Run
from psmt.types import Array
from psmt.utils.disk_series import blocks
from psmt.utils.threads import one_blas_thread
from psmt.utils.validation import check_film

AllSettings = Mapping[str, Any]
"""`PaperSettings` by experiment."""


def chapters() -> dict[str, Chapter[Any]]:
    """The chapters of the report, by experiment, in its order."""
    found = {name: experiment_of(name).chapter for name in EXPERIMENTS}
    return {name: chapter for name, chapter in found.items() if chapter is not None}


def asked_settings(options: FilmOptions) -> dict[str, Any]:
    """Settings of all experiments, as the options of one command ask for them."""
    return {name: command_of(name).options.within(options).settings() for name in chapters()}


def demo_settings(options: FilmOptions) -> dict[str, Any]:
    """Settings of all experiments for the built-in film; of the options, the seed and the departures count."""

    def demo(asked: Any) -> Any:
        kept = {name: getattr(asked, name) for name in ("seed", "departures") if hasattr(asked, name)}
        return replace(type(asked).demo(), **kept)

    return {name: demo(asked) for name, asked in asked_settings(options).items()}


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """All results on one film."""

    n_frames: int
    asked: AllSettings
    used: AllSettings
    """As they fit into the film; None for an experiment that no size fits."""
    notes: Mapping[str, str]
    """Why settings are not as asked, by experiment; nothing for one that is."""
    results: Mapping[str, Any]
    """By experiment, of those that fit."""


def fit_settings(asked: AllSettings, n_frames: int) -> tuple[dict[str, Any], dict[str, str]]:
    """What of the settings fits into a film of `n_frames`, None where nothing does; and why it is not as asked."""
    fitted = {name: settings.fitted(n_frames) for name, settings in asked.items()}
    return {name: used for name, (used, _) in fitted.items()}, {
        name: note for name, (_, note) in fitted.items() if note
    }


def reproduce(values: ArrayLike, settings: AllSettings, run: Run) -> Reproduction:
    """Results of the experiments in `settings` on patches or a series (time, n_features)."""
    film = check_film(values)
    used, notes = fit_settings(settings, len(film))
    results: dict[str, Any] = {}
    # What is computed between tasks must not depend on the number of this machine's cores either.
    with one_blas_thread():
        for name, own in used.items():
            if own is not None:
                results[name] = experiment_of(name).run(film, own, run, results)
    return Reproduction(n_frames=len(film), asked=settings, used=used, notes=notes, results=results)


def run_key(values: Array, settings: AllSettings) -> str:
    """Short hash of the values and the settings."""
    described = repr({name: asdict(own) for name, own in settings.items()})
    digest = sha256()
    for block in blocks(values):
        digest.update(np.ascontiguousarray(block).data)
    digest.update(described.encode())
    return digest.hexdigest()[:16]
