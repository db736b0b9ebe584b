"""The model of a group of people: networks, embedding and states, learned from series or loaded from a file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array

from psmt.brain.courses import Course, state_means
from psmt.brain.layers import MAX_VOLUMES, clean, code_person, embed_group, join, learn_networks, trajectory
from psmt.brain.states import MEMORIES, StateModel, choose_number, learn_states, score_states
from psmt.data import Spec, open_series
from psmt.errors import FrameSourceError, NotEnoughFramesError, SilentCodesError
from psmt.persistence.model_file import Header, SavedModel, check_prediction
from psmt.persistence.schema import Field, Layout, State, part, under
from psmt.types import Array, Result
from psmt.utils.constraints import Constraint, allowing, check_parameters, count, each, mapping, real, text
from psmt.utils.threads import one_blas_thread

STATE_CANDIDATES = (2, 3, 4, 5, 6, 7, 8)
"""Numbers of states that 'auto' chooses from. Larger numbers are seldom reproduced in other people."""

CHOOSERS = 24
"""Largest number of people from whom the number of states is chosen."""

SHORTEST = 8
"""Smallest number of volumes that the series of each person must have."""

Compute = Callable[[str, Callable[..., Result], Iterable[Mapping[str, Any]], str], list[Result]]
"""``compute(name, function, inputs, stage)`` calls a function with each of the inputs and returns the results."""

_STORED: dict[str, Constraint] = {
    "tr": allowing(None, real(open_bound=True)),
    "high_pass": allowing(None, real()),
    "alpha": real(open_bound=True),
}
_LEARNED: dict[str, Constraint] = {
    "n_atoms": count(2),
    "n_components": count(),
    "n_states": allowing("auto", count(2)),
    "random_state": count(0),
}
_ARRAYS = ("networks", "shares", "embedding", "states")


def _here(_name: str, work: Callable[..., Result], inputs: Iterable[Mapping[str, Any]], _stage: str) -> list[Result]:
    return [work(**own) for own in inputs]


@dataclass(frozen=True, eq=False)
class GroupModel(SavedModel):
    """Networks and states of a group of people, learned by `fit_group`.

    Files contain no data of single people, so `courses_` and `scores_` are empty after `load`.
    """

    regions: tuple[str, ...] = field(repr=False)
    tr: float | None
    high_pass: float | None
    alpha: float
    networks_: Array = field(repr=False)
    """(n_atoms, n_regions): weight of each region in each network (atom)."""
    shares_: Array = field(repr=False)
    """(n_atoms,): share of each network in the activity of all networks."""
    embedding_: Array = field(repr=False)
    """(n_components, n_atoms): maps codes to the trajectory."""
    states_: Array = field(repr=False)
    """(n_states, n_regions): mean activity of each region in each state, in standard deviations of the region."""
    chain_: StateModel = field(repr=False)
    """The places of the states in the embedding, and the Markov chain that switches between states."""
    courses_: Sequence[Course] = field(default=(), repr=False)
    """The course of each person that the model was learned from."""
    scores_: Mapping[int, Array] = field(default_factory=dict, repr=False)
    """Log-likelihood per volume of each person under states fitted to other people, by the number of states tried."""

    @property
    def n_states(self) -> int:
        """The number of states."""
        return self.chain_.n_states

    @property
    def parameters(self) -> dict[str, Any]:
        """The sizes, `alpha` and `high_pass` of the model, as keyword arguments of `fit_group`."""
        sizes = {"n_atoms": len(self.networks_), "n_components": len(self.embedding_), "n_states": self.n_states}
        return {"alpha": self.alpha, "high_pass": self.high_pass, **sizes}

    def transform(
        self, series: Spec | Sequence[Spec], *, preprocess: bool = True, compute: Compute = _here
    ) -> list[Course]:
        """Return the `Course` of each person: network activity, trajectory and states. Nothing is learned.

        The parameters have the same meaning as in `fit_group`. The regions and the TR must equal those of the model.
        """
        names, values = _read(series)
        if len(names) != len(self.regions) or names not in (self.regions, _numbered(len(names))):
            raise FrameSourceError(
                f"the series have {len(names)} regions ({names[0]}, ..), but the model was learned from "
                f"{len(self.regions)} ({self.regions[0]}, ..); give the same regions in the same order"
            )
        with one_blas_thread():
            people = [clean(own, self.tr, self.high_pass) for own in values] if preprocess else values
            codes = list(map(_sparse, _code(people, self.networks_, self.alpha, compute)))
            points = [trajectory(own, self.embedding_) for own in codes]
            return _courses(people, codes, points, self.chain_)

    def get_header(self) -> Header:
        """Return all values that are saved and are not arrays."""
        return {"regions": list(self.regions)} | {name: getattr(self, name) for name in _STORED}

    def get_state(self) -> State:
        """Return the arrays that are saved, by name."""
        chain = {f"chain.{name}": np.asarray(value) for name, value in vars(self.chain_).items()}
        return {name: getattr(self, f"{name}_") for name in _ARRAYS} | chain

    @classmethod
    def stored_schema(cls, header: Header, _layouts: Mapping[str, Layout]) -> dict[str, Field]:
        """Return the shapes, types and ranges that the arrays of a file must have. Refuse an invalid header."""
        mapping({"regions": each(text), **_STORED})("header", header)
        n_regions = len(header["regions"])
        chances = Field(("n_states",), low=0.0, high=1.0 + 1e-9, check=_CHANCES)
        chain = {
            "places": Field(("n_states", "n_components")),
            "covariances": Field(("n_states", "n_components", "n_components"), check=_COVARIANCES),
            "memory": Field((), low=0.0, high=max(MEMORIES)),
            "transitions": chances._replace(shape=("n_states", "n_states")),
            "start": chances,
            "log_likelihood": Field(()),
        }
        return {
            "networks": Field(("n_atoms", n_regions)),
            "shares": Field(("n_atoms",), low=0.0, high=1.0 + 1e-9),
            "embedding": Field(("n_components", "n_atoms")),
            "states": Field(("n_states", n_regions)),
        } | under("chain.", chain)

    @classmethod
    def from_stored(cls, header: Header, arrays: State) -> Self:
        """Return the model with the header and arrays of a file."""
        chain: dict[str, Any] = {name: value[()] for name, value in part(arrays, "chain.").items()}
        own: dict[str, Any] = {f"{name}_": arrays[name] for name in _ARRAYS}
        regions = tuple(header["regions"])
        model = cls(**header | {"regions": regions}, **own, chain_=StateModel(**chain))
        waves = np.cos(np.add.outer(np.arange(float(SHORTEST)), np.arange(len(regions)) ** 2))
        check_prediction(lambda: model.transform([waves])[0].probabilities)
        return model


_CHANCES = (lambda array: bool(np.allclose(array.sum(axis=-1), 1.0)), "has probabilities that do not add up to 1")
_COVARIANCES = (
    lambda array: bool(np.allclose(array, array.transpose(0, 2, 1)) and np.linalg.eigvalsh(array).min() > 0),
    "has a matrix that is not a covariance: symmetric, with positive eigenvalues",
)


def fit_group(
    series: Spec | Sequence[Spec],
    *,
    tr: float | None = None,
    regions: Sequence[str] | None = None,
    n_atoms: int = 32,
    alpha: float = 0.05,
    n_components: int = 6,
    n_states: int | Literal["auto"] = "auto",
    high_pass: float | None = 0.0025,
    preprocess: bool = True,
    random_state: int = 0,
    compute: Compute = _here,
) -> GroupModel:
    """Learn the networks and states of a group from the series of some people.

    Parameters
    ----------
    series : sequence of arrays (time, n_regions), data frames or paths of tables
        The series of each person, in any units. All people need the same regions. For scans, use a masker of nilearn.
    tr : float, optional
        Repetition time: seconds from volume to volume. Without it, drifts with periods above 200 volumes are removed.
    regions : sequence of str, optional
        Names of the regions. None takes the names of the columns, or numbers if columns have no names.
    n_atoms : int
        Number of networks.
    alpha : float
        Sparsity (L1) penalty of layer 1, for regions of variance one.
    n_components : int
        Largest number of dimensions of the trajectories. States are found in these dimensions.
    n_states : int or 'auto'
        Number of states. 'auto' takes the smallest number that fits left-out people about as well as any.
    high_pass : float or None
        Frequency in Hz below which drifts are removed. None removes only the mean.
    preprocess : bool
        Whether to remove drifts and to scale each region to variance one. False uses the series as they are.
    random_state : int
        Seed of the random numbers.
    compute : callable
        Runs the independent parts of the computation, for example in several processes; by default in this one.
    """
    given = {"tr": tr, "high_pass": high_pass, "alpha": alpha, "n_atoms": n_atoms, "n_components": n_components}
    check_parameters(SimpleNamespace(**given, n_states=n_states, random_state=random_state), _STORED | _LEARNED)
    names, values = _read(series, regions)
    with one_blas_thread():
        people = [clean(own, tr, high_pass) for own in values] if preprocess else values
        every = max(1, -(-sum(map(len, people)) // MAX_VOLUMES))
        volumes = np.ascontiguousarray(np.concatenate([own[::every] for own in people]))
        inputs = {"volumes": volumes, "n_atoms": n_atoms, "alpha": alpha, "seed": random_state}
        dictionary = compute("networks", learn_networks, [inputs], "networks")[0]["dictionary"]
        coded = _code(people, dictionary, alpha, compute)
        embedding = embed_group(coded, sum(map(len, people)), dictionary, n_components)
        if not len(embedding):
            raise SilentCodesError(
                f"the codes of all {len(people)} people are constant, because their series do not change or "
                f"alpha={alpha:g} is too large for them; use series that change, or a smaller alpha"
            )
        codes = list(map(_sparse, coded))
        points = [trajectory(own, embedding) for own in codes]
        chain, scores = _fit_states(points, n_states, random_state, compute)
        courses = _courses(people, codes, points, chain)
    activity = np.sum([one["total"] for one in coded], axis=0)
    return GroupModel(
        regions=names,
        tr=tr,
        high_pass=high_pass,
        alpha=alpha,
        networks_=dictionary,
        shares_=np.asarray(activity / max(float(activity.sum()), 1e-300)),
        embedding_=embedding,
        states_=state_means(courses, chain.n_states),
        chain_=chain,
        courses_=courses,
        scores_=scores,
    )


def _read(series: Any, regions: Sequence[str] | None = None) -> tuple[tuple[str, ...], list[Array]]:
    """Return the names of the regions, and the series (time, n_regions) of each person."""
    several = isinstance(series, Sequence | np.ndarray) and not isinstance(series, str)
    if several and not len(series):
        raise FrameSourceError("there are no people; give a series (time, n_regions) of each person")
    people = [open_series(own) for own in (series if several and np.ndim(series[0]) != 1 else [series])]
    first = people[0].feature_names
    names = tuple(regions or first or _numbered(people[0].n_features))
    for k, own in enumerate(people):
        if own.n_features != len(names) or own.feature_names != first:
            raise FrameSourceError(
                f"person {k} has {own.n_features} regions, but {len(names)} are expected ({names[0]}, ..); "
                "give the same regions with the same names in the same order for all people"
            )
        if own.n_frames < SHORTEST:
            raise NotEnoughFramesError(
                f"person {k} has {own.n_frames} volumes; give at least {SHORTEST} of each person"
            )
    return names, [own.values for own in people]


def _numbered(n_regions: int) -> tuple[str, ...]:
    return tuple(f"region {k + 1}" for k in range(n_regions))


def _code(people: Sequence[Array], dictionary: Array, alpha: float, compute: Compute) -> list[Result]:
    inputs = ({"series": own, "dictionary": dictionary, "alpha": alpha} for own in people)
    return compute("codes", code_person, inputs, "codes")


def _sparse(coded: Result) -> csr_array:
    shape = len(coded["indptr"]) - 1, len(coded["total"])
    return csr_array((coded["data"], coded["indices"], coded["indptr"]), shape=shape)


def _courses(people: list[Array], codes: list[csr_array], points: list[Array], chain: StateModel) -> list[Course]:
    each = zip(people, codes, points, map(chain.shown, points), strict=True)
    return [Course(*own, probabilities=chain.posterior(own[2])[0]) for own in each]


def _fit_states(
    points: list[Array], n_states: int | Literal["auto"], seed: int, compute: Compute
) -> tuple[StateModel, dict[int, Array]]:
    """Return the fitted states, and the scores (n_people,) of each number of states that was tried."""
    scores: dict[int, Array] = {}
    if n_states == "auto":
        some = join(points[:CHOOSERS]) | {"seed": seed}
        found = compute("number", score_states, ({**some, "n_states": n} for n in STATE_CANDIDATES), "number of states")
        scores = {n: one["scores"] for n, one in zip(STATE_CANDIDATES, found, strict=True)}
        n_states = choose_number(scores)
    (fitted,) = compute("states", learn_states, [join(points) | {"seed": seed, "n_states": n_states}], "states")
    fields: dict[str, Any] = {name: value[()] for name, value in fitted.items()}
    return StateModel(**fields), scores
