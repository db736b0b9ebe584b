"""What other films teach: moments of candidates and true changes, by how long a scene has been seen.

A film or a scene that has just begun has no record of its own. What the candidates are worth then is much the same in
all films, and is not what it is later: the phases of one step are noisy, and running means hold one frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from itertools import islice, pairwise
from os import PathLike
from typing import Self

import numpy as np

from psmt.engines.frame_kernels import common_weights
from psmt.persistence.model_file import Header, SavedModel, load_model
from psmt.persistence.schema import MOMENT, Field, Layout, check_state
from psmt.persistence.state import State
from psmt.types import Levels
from psmt.utils.validation import each, mapping
from psmt.video.blending import PULL
from psmt.video.candidates import PLANES, Candidates
from psmt.video.checks import check_film
from psmt.video.grid import Grid

STAGES = (1, 2, 3, 5, 8, 13)
"""Ages of a scene, in changes seen, at which a stage begins. From the last one on a film has a record of its own."""

SNIPPET = 16
"""Frames of a piece of film that a prior is learned from: each begins anew, so that every age is seen as often."""

_HEAVIEST = 1e3
"""What films teach are weights around 1; a candidate that counts more than this has moments that no film has."""


@dataclass(frozen=True, eq=False)
class Prior(SavedModel):
    """Moments of candidates and changes, of films in which every frame counts the same.

    Attributes
    ----------
    names : tuple of str
        Of the candidates.
    gram : (len(STAGES), n_candidates, n_candidates) array
        Mean inner products of the candidates over cells and frames, by stage.
    match : (len(STAGES), n_candidates) array
        The same of candidates and true changes.
    """

    names: tuple[str, ...]
    gram: Levels
    match: Levels

    @staticmethod
    def schema(n_candidates: int) -> dict[str, Field]:
        """What the moments of so many candidates are."""
        match = Field((len(STAGES), n_candidates), "float32")
        return {"gram": match._replace(shape=(*match.shape, n_candidates), check=MOMENT), "match": match}

    def at(self, age: int) -> tuple[Levels, Levels]:
        """Moments (n_candidates, n_candidates) and (n_candidates,) of scenes of this age."""
        stage = _stage(age)
        return self.gram[stage], self.match[stage]

    def weights_at(self, age: int) -> Levels:
        """Weights (n_candidates,) of scenes of this age, the same everywhere."""
        weights: Levels = self._weights[_stage(age)]
        return weights

    @cached_property
    def _weights(self) -> Levels:
        """Weights (len(STAGES), n_candidates)."""
        moments = zip(self.gram.astype(np.float64), self.match.astype(np.float64), strict=True)
        return np.stack([common_weights(*own, PULL)[0] for own in moments]).astype(np.float32)

    def get_header(self) -> Header:
        """Return the names of the candidates and the stages."""
        return {"names": list(self.names), "stages": list(STAGES)}

    def get_state(self) -> State:
        """Return the moments as a file holds them: of the symmetric ones, one half."""
        rows, columns = np.triu_indices(len(self.names))
        return {"gram": self.gram[:, rows, columns], "match": self.match}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the prior that `save` wrote, or `psmt learn`."""
        return load_model(path, cls)

    @classmethod
    def stored_schema(cls, header: Header, _layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the schema of a file's arrays, or raise where its header is wrong."""
        mapping({"names": each(_check_name), "stages": _check_stages})("header", header)
        n = len(header["names"])
        return cls.schema(n) | {"gram": Field((len(STAGES), n * (n + 1) // 2), "float32")}

    @classmethod
    def from_stored(cls, header: Header, arrays: State) -> Self:
        """Return the prior of a file."""
        n = len(header["names"])
        rows, columns = np.triu_indices(n)
        gram: Levels = np.empty((len(STAGES), n, n), np.float32)
        gram[:, rows, columns] = gram[:, columns, rows] = arrays["gram"]
        check_state(cls.schema(n), {"gram": gram, "match": arrays["match"]})
        prior = cls(tuple(header["names"]), gram, arrays["match"])
        heaviest = float(np.abs(prior._weights).max(initial=0.0))
        if not heaviest <= _HEAVIEST:
            raise ValueError(f"match does not belong to gram: a weight would be {heaviest:.3g}")
        return prior


def check_prior(name: str, value: object) -> None:
    """Constraint: a prior, where one is kept, or none."""
    if value is not None and not isinstance(value, str | PathLike | Prior):
        raise TypeError(f"{name}={value!r} is no prior; give 'default', None, a Prior or the file of one")


def _check_name(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r} is not the name of a candidate")


def _check_stages(name: str, value: object) -> None:
    if value != list(STAGES):
        raise ValueError(f"{name}={value!r} is not {list(STAGES)}, which this psmt knows; make the prior again")


@lru_cache(maxsize=1)
def default_prior() -> Prior:
    """Return the prior that comes with the package, as ``psmt learn`` made it from built-in films."""
    with as_file(files("psmt.video") / "default.prior") as path:
        return Prior.load(path)


def learn_prior(films: Iterable[Iterable[Levels]]) -> Prior:
    """Return what films, as few or as many as there are, have in common: arrays, or frames (height, width) in a row.

    Each is cut into snippets of 16 frames, and every frame of every film counts the same, however lively it is. No more
    than two snippets are held at a time.
    """
    gram, match, n_frames = None, None, np.zeros(len(STAGES))
    names: tuple[str, ...] = ()
    for film in films:
        grid = candidates = None
        for snippet in _snippets(film):
            if grid is None or candidates is None:
                grid, candidates = Grid(snippet.shape[1:]), Candidates(snippet.shape[1:], PLANES)
                names = candidates.names
            if gram is None or match is None:
                gram = np.zeros((len(STAGES), len(names), len(names)))
                match = np.zeros((len(STAGES), len(names)))
            scene = candidates.start(snippet[0])
            for now, after in pairwise(snippet[1:]):
                scene, _, seen = candidates.see(scene, now)
                energy = max(float(np.mean((now - scene.previous) ** 2)), float(np.mean((after - now) ** 2)))
                if energy == 0:
                    continue
                unit = np.float32(energy**-0.5)
                one, other = grid.moments(unit * seen, unit * (after - now))
                stage = _stage(scene.age)
                gram[stage] += one.mean(axis=(0, 1))
                match[stage] += other.mean(axis=(0, 1))
                n_frames[stage] += 1
    if gram is None or match is None:
        raise ValueError("there are no films to learn from; give one at least")
    count = np.maximum(n_frames, 1)[:, None]
    # A product of a matrix with itself is symmetric but for its rounding.
    gram = (gram + gram.swapaxes(1, 2)) / (2 * count[..., None])
    return Prior(names, gram.astype(np.float32), (match / count).astype(np.float32))


def _snippets(film: Iterable[Levels]) -> Iterator[Levels]:
    """Yield pieces (3 to 17, height, width) of a film: 16 frames, and the one that comes after them."""
    frames = iter(film)
    begun = list(islice(frames, SNIPPET + 1))
    yield check_film(begun, minimum=3)
    while len(begun) > SNIPPET:
        begun = [begun[-1], *islice(frames, SNIPPET)]
        if len(begun) > 2:
            yield check_film(begun, minimum=3)


def _stage(age: int) -> int:
    """Index of the stage that a scene of this age is in."""
    return max(int(np.searchsorted(STAGES, age, side="right")) - 1, 0)
