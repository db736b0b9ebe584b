"""Priors: how useful each candidate was on other films, for the first frames of a scene.

A prior holds the moments (inner products) of candidates and true changes, by the age of the scene. At the start of a
scene, the model has no data to learn weights from, but the useful candidates are similar in all films. Other candidates
are useful later in a scene. At its start, the phase of a single step is noisy and a running mean holds a single frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from itertools import chain, islice, pairwise
from os import PathLike
from typing import Self

import numpy as np

from psmt import __version__
from psmt.engines.frame_kernels import common_weights
from psmt.errors import ModelFileError
from psmt.persistence.model_file import Header, SavedModel
from psmt.persistence.schema import MOMENT, Field, Layout, State, check_state
from psmt.types import Levels
from psmt.utils.constraints import each, mapping, text
from psmt.video.candidates import PLANES, Candidates
from psmt.video.cells import PULL, Grid
from psmt.video.frames import check_grey_film

STAGES = (1, 2, 3, 5, 8, 13)  # ages of a scene, in changes seen, at which a stage begins
SNIPPET = 16  # frames of the pieces of film that a prior is learned from; each is a new scene
_HEAVIEST = 1e3  # largest weight that a prior may give to a candidate; weights learned from films are around 1


@dataclass(frozen=True, eq=False)
class Prior(SavedModel):
    """Moments (inner products) of candidates and true changes, averaged over the frames of films.

    Attributes
    ----------
    names : tuple of str
        Names of the candidates.
    gram : (len(STAGES), n_candidates, n_candidates) array
        Mean inner products of the candidates over cells and frames, for each stage (range of ages) of a scene.
    match : (len(STAGES), n_candidates) array
        Mean inner products of the candidates with the true changes.
    """

    names: tuple[str, ...]
    gram: Levels
    match: Levels

    @staticmethod
    def schema(n_candidates: int) -> dict[str, Field]:
        """Return the schema (shape, type and range) of `gram` and `match`, for this number of candidates."""
        match = Field((len(STAGES), n_candidates), "float32")
        return {"gram": match._replace(shape=(*match.shape, n_candidates), check=MOMENT), "match": match}

    def at(self, age: int) -> tuple[Levels, Levels]:
        """Return `gram` (n_candidates, n_candidates) and `match` (n_candidates,) after `age` changes of a scene."""
        stage = _stage(age)
        return self.gram[stage], self.match[stage]

    def weights_at(self, age: int) -> Levels:
        """Return the candidates' weights (n_candidates,), equal in all cells, after `age` changes of a scene."""
        return np.asarray(self._weights[_stage(age)])

    @cached_property
    def _weights(self) -> Levels:
        """Return the weights (len(STAGES), n_candidates) of the candidates at each stage of a scene."""
        moments = zip(self.gram.astype(np.float64), self.match.astype(np.float64), strict=True)
        return np.stack([common_weights(*own, PULL)[0] for own in moments]).astype(np.float32)

    def for_candidates(self, names: tuple[str, ...]) -> Prior:
        """Return this prior for candidates `names`, in this order. Candidates that it does not have get zero moments.

        `ModelFileError` is raised if it has a candidate that is not in `names`, the same candidate twice, or none.
        """
        if self.names == names:
            return self
        other = [f", {name!r:.80} among them" for name in self.names if name not in names]
        if other or not self.names or len(set(self.names)) < len(self.names):
            raise ModelFileError(
                f"the prior is for {len(self.names)} candidates{''.join(other[:1])}, but "
                f"psmt {__version__} has {len(names)} others: another version of psmt made it; make it again with "
                "psmt learn of this version, or use prior='default' or prior=None"
            )
        known = [names.index(name) for name in self.names]
        gram, match = (np.zeros((len(STAGES), *shape), np.float32) for shape in ((len(names),) * 2, (len(names),)))
        gram[:, np.array(known)[:, None], known] = self.gram
        match[:, known] = self.match
        return Prior(names, gram, match)

    def get_header(self) -> Header:
        """Return the header of a file: the names of the candidates, and the ages at which the stages begin."""
        return {"names": list(self.names), "stages": list(STAGES)}

    def get_state(self) -> State:
        """Return the arrays of a file: `match`, and the upper triangle of the symmetric `gram`."""
        rows, columns = np.triu_indices(len(self.names))
        return {"gram": self.gram[:, rows, columns], "match": self.match}

    @classmethod
    def stored_schema(cls, header: Header, _layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Check the header of a file, and return the schema (shape, type and range) of the file's arrays."""
        mapping({"names": each(text), "stages": _check_stages})("header", header)
        n = len(header["names"])
        return cls.schema(n) | {"gram": Field((len(STAGES), n * (n + 1) // 2), "float32")}

    @classmethod
    def from_stored(cls, header: Header, arrays: State) -> Self:
        """Return the prior, given the header and the arrays of a file."""
        n = len(header["names"])
        rows, columns = np.triu_indices(n)
        gram: Levels = np.empty((len(STAGES), n, n), np.float32)
        gram[:, rows, columns] = gram[:, columns, rows] = arrays["gram"]
        check_state(cls.schema(n), {"gram": gram, "match": arrays["match"]})
        prior = cls(tuple(header["names"]), gram, arrays["match"])
        heaviest = float(np.abs(prior._weights).max(initial=0.0))
        if not heaviest <= _HEAVIEST:
            raise ValueError(f"match does not fit gram: they give a weight of {heaviest:.3g}, above {_HEAVIEST:g}")
        return prior


def check_prior(name: str, value: object) -> None:
    """Raise `TypeError` unless the value is a `Prior`, a string, a path or None."""
    if value is not None and not isinstance(value, str | PathLike | Prior):
        raise TypeError(f"{name}={value!r} is not a prior; give 'default', None, a Prior or the path of its file")


def _check_stages(name: str, value: object) -> None:
    if value != list(STAGES):
        raise ValueError(f"{name}={value!r} differs from {list(STAGES)} of this psmt; make the prior again")


def read_prior(prior: str | PathLike[str] | Prior, names: tuple[str, ...]) -> Prior:
    """Return the prior for the candidates `names`, from a `Prior`, from the path of its file, or from 'default'."""
    if not isinstance(prior, Prior):
        prior = _default_prior() if prior == "default" else Prior.load(prior)
    return prior.for_candidates(names)


@lru_cache(maxsize=1)
def _default_prior() -> Prior:
    """Return the prior that comes with the package. It was made by ``psmt learn`` from built-in films."""
    with as_file(files("psmt.video") / "default.prior") as path:
        return Prior.load(path)


def learn_prior(films: Iterable[Iterable[Levels]]) -> Prior:
    """Learn a prior from one or more films, each given as an array or as an iterable of frames (height, width).

    Each film is cut into snippets of 16 frames, which are treated as new scenes. Changes are normalised, so that every
    frame has the same weight. At most two snippets are in memory at a time.
    """
    names = Candidates((1, 1), PLANES).names
    gram = np.zeros((len(STAGES), len(names), len(names)))
    match, n_frames = np.zeros((len(STAGES), len(names))), np.zeros(len(STAGES))
    snippet = None
    for snippet in chain.from_iterable(map(_snippets, films)):
        grid, candidates = Grid(snippet.shape[1:]), Candidates(snippet.shape[1:], PLANES)
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
    if snippet is None:
        raise ValueError("there are no films to learn from; give at least one")
    count = np.maximum(n_frames, 1)[:, None]
    # A product of a matrix with itself is symmetric but for its rounding.
    gram = (gram + gram.swapaxes(1, 2)) / (2 * count[..., None])
    return Prior(names, gram.astype(np.float32), (match / count).astype(np.float32))


def _snippets(film: Iterable[Levels]) -> Iterator[Levels]:
    """Yield pieces (n, height, width) of a film: 16 frames, and the frame after them. The last piece may be shorter."""
    frames = iter(film)
    piece = list(islice(frames, SNIPPET + 1))
    yield check_grey_film(piece, minimum=3)
    while len(piece) > SNIPPET:
        piece = [piece[-1], *islice(frames, SNIPPET)]
        if len(piece) > 2:
            yield check_grey_film(piece, minimum=3)


def _stage(age: int) -> int:
    """Return the index of the stage to which the age of a scene belongs (see `STAGES`)."""
    return max(int(np.searchsorted(STAGES, age, side="right")) - 1, 0)
