"""What was looked at, as reports and summaries tell it: the film or series, its place, and the versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import psmt
from psmt.data.speed_and_noise import Regime
from psmt.experiments.expectation import expectation, place_figure, shipped_map
from psmt.experiments.still_image import Still
from psmt.figures import png
from psmt.report import Fact, Picture, Section

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "av", "matplotlib")
"""Packages whose versions a result may depend on."""


@dataclass(frozen=True, kw_only=True)
class FilmRecord:
    """What was looked at."""

    name: str
    checksum: str | None
    """sha256, 64 hex digits; None for a camera or a stream, which cannot be read again."""
    n_frames: int | None
    """None where nobody knows it before the end."""
    patch_size: int | None = None
    """None for a series and for whole frames."""
    frame_size: int | None = None
    position: tuple[int, int] | None = None
    features: tuple[str, ...] | None = None
    """Names of a series' features, numbers where it has none; None for a film."""
    regime: Regime | None = None
    """Speed and noise, where they can be measured."""

    @property
    def kind(self) -> str:
        """What to call it."""
        return "film" if self.features is None else "series"

    @property
    def unit(self) -> str:
        """What errors are mean squared errors of."""
        return "standardised patches" if self.features is None else "standardised features"


def film_facts(film: FilmRecord) -> list[Fact]:
    """The film, its checksum, and which part of it was looked at."""
    length = "" if film.n_frames is None else f", {film.n_frames:,} frames"
    facts = [Fact(film.kind.capitalize(), f"{film.name}{length}")]
    if film.checksum is not None:
        facts.append(Fact("Checksum", f"sha256 {film.checksum}"))
    if film.patch_size is not None:
        where = "the centre" if film.position is None else f"row {film.position[0]}, column {film.position[1]}"
        patch, frame = (f"{side} × {side}" for side in (film.patch_size, film.frame_size))
        facts.append(Fact("Patch", f"{patch} of {frame} pixels, {where}, standardised"))
    if film.features is not None:
        shown = ", ".join(film.features[:12]) + (", .." if len(film.features) > 12 else "")
        facts.append(
            Fact(
                "Features",
                f"{len(film.features):,} ({shown}), each standardised: by its past where something is predicted, else "
                "by the whole series",
            )
        )
    return facts


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result may depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def versions_fact() -> Fact:
    """The same for people, with ours."""
    return Fact("Versions", ", ".join([f"psmt {psmt.__version__}", *(f"{n} {v}" for n, v in versions().items())]))


def still_picture(still: Still, film: FilmRecord) -> Picture:
    """The still with its caption: what is marked, and how it moves."""
    side = still.patch_size
    caption = (
        f"Frame {still.index} of {film.name}. All of this is about the patch in the square, {side} × {side} pixels"
    )
    if film.regime is not None:
        caption += f": it moves by {film.regime.speed:.2g} pixels per frame, with noise of {film.regime.noise:.1%}"
    return Picture(still.png(), alt=f"A frame of {film.name} with a square around the patch", caption=caption + ".")


def expected_section(film: FilmRecord) -> Sequence[Section]:
    """Where the film lies on the map of regimes; nothing where speed and noise were not measured."""
    if film.regime is None:
        return []
    return [
        Section(
            title="What to expect of this film",
            text=[
                expectation(film.regime),
                "Speed and noise were measured on this film's patches. The map was measured on films of known speed "
                "and noise (psmt regimes), with small dictionaries: expect its directions, not its values.",
            ],
            pictures=[
                Picture(
                    png(place_figure(shipped_map(), film.regime)),
                    alt="Maps of speed and noise: where PSMT's straight line beats copying, and this film's place",
                )
            ],
        )
    ]


def to_json(content: Any) -> bytes:
    """Plain values, arrays of NumPy's numbers among them, as a JSON file in UTF-8."""
    text = json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    return text.encode(errors="backslashreplace") + b"\n"


def _plain(value: Any) -> Any:
    """For JSON, which knows neither NaN nor NumPy."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value
