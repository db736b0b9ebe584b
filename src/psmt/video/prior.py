"""Priors: moments of candidates and true changes, learned on other films, by the age of a scene.

In a scene that has just begun the model has no record. Which candidates are useful then is similar in all films, and
differs from later on: phases of one step are noisy, and running means hold a single frame.
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

from psmt.engines.frame_kernels import common_weights
from psmt.errors import ModelFileError
from psmt.persistence.model_file import Header, SavedModel, load_model
from psmt.persistence.schema import MOMENT, Field, Layout, State, check_state
from psmt.types import Levels
from psmt.utils.constraints import each, mapping, text
from psmt.video.candidates import PLANES, Candidates
from psmt.video.cells import PULL, Grid
from psmt.video.frames import check_film

STAGES = (1, 2, 3, 5, 8, 13)  # ages of a scene, in changes seen, at which a stage begins
SNIPPET = 16  # frames of the pieces of film that a prior is learned from; each is a new scene
_HEAVIEST = 1e3  # largest weight that a prior may give to a candidate; weights learned from films are around 1


@dataclass(frozen=True, eq=False)
class Prior(SavedModel):
    """Moments of candidates and changes, of films in which every frame has the same weight.

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
        """Declare the moments of this number of candidates."""
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

    def for_candidates(self, names: tuple[str, ...]) -> Prior:
        """Return the prior of these candidates: those that it does not know have zero moments, and so no weight.

        Raises
        ------
        ModelFileError
            Where the prior knows other candidates, or none.
        """
        if self.names == names:
            return self
        other = next((name for name in self.names if name not in names), "")
        if other or not self.names or len(set(self.names)) < len(self.names):
            raise ModelFileError(
                f"the prior is of {len(self.names)} candidates{f', {other!r:.80} among them' if other else ''}, but "
                f"this psmt has {len(names)} of its own; make it again with psmt learn, or use prior='default'"
            )
        known = [names.index(name) for name in self.names]
        gram, match = (np.zeros((len(STAGES), *shape), np.float32) for shape in ((len(names),) * 2, (len(names),)))
        gram[:, np.array(known)[:, None], known] = self.gram
        match[:, known] = self.match
        return Prior(names, gram, match)

    def get_header(self) -> Header:
        """Return the names of the candidates and the stages."""
        return {"names": list(self.names), "stages": list(STAGES)}

    def get_state(self) -> State:
        """Return the moments as a file holds them: of the symmetric ones, one half."""
        rows, columns = np.triu_indices(len(self.names))
        return {"gram": self.gram[:, rows, columns], "match": self.match}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the prior that `save` or `psmt learn` wrote."""
        return load_model(path, cls)

    @classmethod
    def stored_schema(cls, header: Header, _layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Check the header of a file, and declare its arrays: half of the symmetric moments."""
        mapping({"names": each(text), "stages": _check_stages})("header", header)
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
    """Constraint: a prior, a file of one, 'default' or None."""
    if value is not None and not isinstance(value, str | PathLike | Prior):
        raise TypeError(f"{name}={value!r} is not a prior; give 'default', None, a Prior or the file of one")


def _check_stages(name: str, value: object) -> None:
    if value != list(STAGES):
        raise ValueError(f"{name}={value!r} is not {list(STAGES)}, which this psmt knows; make the prior again")


def read_prior(prior: str | PathLike[str] | Prior, names: tuple[str, ...]) -> Prior:
    """Return the prior of candidates of these names, read from its file where it is a path."""
    if not isinstance(prior, Prior):
        prior = _default_prior() if prior == "default" else Prior.load(prior)
    return prior.for_candidates(names)


@lru_cache(maxsize=1)
def _default_prior() -> Prior:
    """The prior that comes with the package, as ``psmt learn`` made it from built-in films."""
    with as_file(files("psmt.video") / "default.prior") as path:
        return Prior.load(path)


def learn_prior(films: Iterable[Iterable[Levels]]) -> Prior:
    """Return the prior of one or more films, each given as an array or as an iterable of frames (height, width).

    Each film is cut into snippets of 16 frames. Every frame has the same weight, whatever the energy of its change. At
    most two snippets are in memory at a time.
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
        raise ValueError("there are no films to learn from; give one at least")
    count = np.maximum(n_frames, 1)[:, None]
    # A product of a matrix with itself is symmetric but for its rounding.
    gram = (gram + gram.swapaxes(1, 2)) / (2 * count[..., None])
    return Prior(names, gram.astype(np.float32), (match / count).astype(np.float32))


def _snippets(film: Iterable[Levels]) -> Iterator[Levels]:
    """Yield pieces (3 to 17, height, width) of a film: 16 frames, and the one that comes after them."""
    frames = iter(film)
    piece = list(islice(frames, SNIPPET + 1))
    yield check_film(piece, minimum=3)
    while len(piece) > SNIPPET:
        piece = [piece[-1], *islice(frames, SNIPPET)]
        if len(piece) > 2:
            yield check_film(piece, minimum=3)


def _stage(age: int) -> int:
    """Index of the stage that a scene of this age is in."""
    return max(int(np.searchsorted(STAGES, age, side="right")) - 1, 0)
