"""Results of a study: predictions, components, states, and how reproducible states are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psmt.evaluation import Interval, mean_interval
from psmt.evaluation.null_models import NullTest
from psmt.experiments.brain.components import ComponentStep, count_events
from psmt.experiments.brain.prediction import PREDICTORS
from psmt.experiments.brain.reproducibility import GROUP_MEASURES, MEASURES, NULL_SPLITS, SURROGATES
from psmt.experiments.brain.settings import PATHS, BrainSettings
from psmt.experiments.brain.states import StateModel
from psmt.experiments.brain.subjects import Study
from psmt.types import Array, Ints


class StateDynamics(NamedTuple):
    """How the states of one person or of the group follow each other."""

    occupancy: Array
    """(n_states,): share of the volumes."""
    dwell: Array
    """(n_states,): mean length of a visit in volumes; NaN for a state that is never visited."""
    transitions: Array
    """(n_states, n_states): where the trajectory goes when it leaves a state, as shares; NaN if it never does."""


@dataclass(frozen=True, eq=False)
class BrainResult:
    """Everything that was found in a study.

    Scores of reproducibility are correlations of matched states or networks between two halves. ``foretold`` is the
    gain in log-likelihood of the other half by our states, in nats per volume, see `likelihood_gains`.
    """

    study: Study
    settings: BrainSettings
    dictionary: Array
    """(n_atoms, n_regions)"""
    energy: Array
    """(n_atoms,): share of the codes' activity."""
    model: StateModel
    state_scores: Mapping[int, Array]
    """By number of states: log-likelihood per volume of each person by states of others."""
    states: Sequence[Ints]
    """(time,) of each person."""
    certainty: Sequence[Array]
    """(time,) of each person: probability of the likeliest state."""
    patterns: Array
    """(n_states, n_regions): mean activity in each state, in standard deviations of a region."""
    steps: Sequence[Sequence[ComponentStep]]
    """Components of the graph of atoms over time, of each person."""
    starts: Sequence[Ints]
    """First volumes of the windows of each person."""
    errors: Array
    """(n_people, n_predictors, horizon): MSE / variance."""
    between: Mapping[str, Mapping[str, Array]]
    """Scores (n_splits,) between halves of the people, by measure (also ``networks`` and ``foretold``) and method."""
    within: Mapping[str, Mapping[str, Array]]
    """Scores (n_compared,) between halves of each person's time, by measure and method."""
    nulls: Mapping[str, Mapping[str, Array]]
    """Our scores (n_draws,) between halves of surrogate people, by surrogate and measure: means over `NULL_SPLITS`."""
    within_nulls: Mapping[str, Mapping[str, Array]]
    """Our scores (n_compared,) between halves of a surrogate of each person, by surrogate and measure."""
    agreement: Mapping[str, float]
    """Adjusted Rand index with the true states, by method; empty if these are not known."""
    agreement_by_person: Mapping[str, Array]
    """The same of each person (n_compared,)."""

    @property
    def n_states(self) -> int:
        """K."""
        return self.model.n_states

    @property
    def n_splits(self) -> int:
        """Number of splits of the people into halves; 0 for a single person."""
        return len(self.between["networks"]["psmt"])

    @property
    def seconds(self) -> float:
        """Duration of a volume; 1 if no TR is known, so that times are in volumes."""
        return self.study.tr or 1.0

    @property
    def unit(self) -> str:
        """Unit of times."""
        return "s" if self.study.tr else "volumes"

    # Statistics, each computed once

    @cached_property
    def mean_errors(self) -> dict[str, Array]:
        """Mean error over people (horizon,), by predictor."""
        return dict(zip(PREDICTORS, self.errors.mean(axis=0), strict=True))

    @cached_property
    def group_dynamics(self) -> StateDynamics:
        """Dynamics of the states of all people."""
        return state_dynamics(self.states, self.n_states)

    @cached_property
    def person_dynamics(self) -> dict[str, StateDynamics]:
        """Dynamics of the states of each person, by name."""
        found = [state_dynamics([own], self.n_states) for own in self.states]
        return dict(zip(self.study.names, found, strict=True))

    @cached_property
    def between_means(self) -> dict[str, dict[str, Interval]]:
        """Mean of `between` over splits, by measure and method."""
        return _means(self.between)

    @cached_property
    def within_means(self) -> dict[str, dict[str, Interval]]:
        """Mean of `within` over people, by measure and method."""
        return _means(self.within)

    @cached_property
    def surrogate_tests(self) -> dict[str, dict[str, NullTest]]:
        """Our scores between halves of the people with draws of a surrogate by the same splits."""
        if not self.n_splits:
            return {kind: dict.fromkeys(self.between, NullTest(np.nan, np.zeros(0))) for kind in SURROGATES}
        scores = {measure: float(np.mean(own["psmt"][:NULL_SPLITS])) for measure, own in self.between.items()}
        return {kind: {name: NullTest(scores[name], own[name]) for name in scores} for kind, own in self.nulls.items()}

    @cached_property
    def component_counts(self) -> dict[str, dict[str, int]]:
        """Numbers of components and of their events, by person."""
        counts = [count_events(steps, PATHS) for steps in self.steps]
        return dict(zip(self.study.names, counts, strict=True))

    # Files

    def prediction_rows(self) -> Iterator[tuple[str, str, int, float]]:
        """Lines of prediction.csv."""
        for subject, errors in zip(self.study.names, self.errors, strict=True):
            for name, own in zip(PREDICTORS, errors, strict=True):
                yield from ((subject, name, h + 1, float(error)) for h, error in enumerate(own))

    def state_rows(self) -> Iterator[tuple[str, int, float, int, float]]:
        """Lines of states.csv."""
        for subject, states, certainty in zip(self.study.names, self.states, self.certainty, strict=True):
            for t, (state, sure) in enumerate(zip(states, certainty, strict=True)):
                yield subject, t, t * self.seconds, int(state) + 1, round(float(sure), 4)

    def topology_rows(self) -> Iterator[tuple[str, int, float, int, int, str, int]]:
        """Lines of topology.csv."""
        for subject, steps, starts in zip(self.study.names, self.steps, self.starts, strict=True):
            for step in steps:
                t = int(starts[step.window]) + self.settings.window // 2
                number = step.component + 1
                yield subject, t, t * self.seconds, number, step.size, step.event, int(step.ends)

    def summary(self) -> dict[str, Any]:
        """Numbers for summary.json, without claims."""
        less = {
            kind: {measure: self.within[measure]["psmt"] - own[measure] for measure in MEASURES[:2]}
            for kind, own in self.within_nulls.items()
        }
        return {
            "subjects": self.study.names,
            "volumes": self.study.lengths,
            "regions": self.study.regions,
            "tr": self.study.tr,
            "remarks": self.study.remarks,
            "prediction": {name: dict(enumerate(own, 1)) for name, own in self.mean_errors.items()},
            "n_states": self.n_states,
            "state_scores": {n: np.mean(score) for n, score in self.state_scores.items()},
            "memory": self.model.memory,
            "states": {
                name: {**own._asdict(), "dwell": self.seconds * own.dwell}
                for name, own in {"group": self.group_dynamics, **self.person_dynamics}.items()
            },
            "time_unit": self.unit,
            "reproducibility": {
                "states_between_people": _as_dicts({measure: self.between_means[measure] for measure in MEASURES}),
                "states_within_person": _as_dicts({measure: self.within_means[measure] for measure in MEASURES}),
                "networks_between_people": self.between_means["networks"]["psmt"]._asdict(),
                "against_surrogates": {
                    kind: {measure: own[measure].summary() for measure in (*MEASURES[:2], *GROUP_MEASURES)}
                    for kind, own in self.surrogate_tests.items()
                },
                "within_person_less_surrogates": _as_dicts(_means(less)),
            },
            "agreement_with_truth": self.agreement,
            "topology": self.component_counts,
        }


def state_dynamics(people: Sequence[Ints], n_states: int) -> StateDynamics:
    """Occupancy, dwell times and transitions of the states (time,) of some people.

    >>> state_dynamics([np.array([0, 0, 1, 1, 1, 0])], 2).dwell.tolist()
    [1.5, 3.0]
    """
    volumes, visits, moves = np.zeros(n_states), np.zeros(n_states), np.zeros((n_states, n_states))
    for states in people:
        volumes += np.bincount(states, minlength=n_states)
        left = np.flatnonzero(np.diff(states))
        np.add.at(visits, states[np.concatenate([[0], left + 1])], 1)
        np.add.at(moves, (states[left], states[left + 1]), 1)
    n_left = moves.sum(axis=1, keepdims=True)
    return StateDynamics(
        occupancy=volumes / volumes.sum(),
        dwell=np.divide(volumes, visits, out=np.full(n_states, np.nan), where=visits > 0),
        transitions=np.divide(moves, n_left, out=np.full_like(moves, np.nan), where=n_left > 0),
    )


def _means(scores: Mapping[str, Mapping[str, Array]]) -> dict[str, dict[str, Interval]]:
    return {outer: {name: mean_interval(own) for name, own in inner.items()} for outer, inner in scores.items()}


def _as_dicts(means: Mapping[str, Mapping[str, Interval]]) -> dict[str, dict[str, Any]]:
    return {outer: {name: own._asdict() for name, own in inner.items()} for outer, inner in means.items()}
