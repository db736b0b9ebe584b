"""What came out of a study: states, components, predictions, and how far states can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psmt.evaluation import Interval, mean_interval
from psmt.evaluation.missing_numbers import plain
from psmt.evaluation.null_test import Measured
from psmt.experiments.brain.components import Step, lasting
from psmt.experiments.brain.halves import MEASURES, NULL_SPLITS
from psmt.experiments.brain.prediction import METHODS as PREDICTORS
from psmt.experiments.brain.settings import PATHS, BrainSettings
from psmt.experiments.brain.states import StateModel
from psmt.experiments.brain.study import Study
from psmt.types import Array, Ints

HELD_AGAINST = (*MEASURES[:2], "networks", "foretold")
"""What surrogates are asked for, too."""


class Dynamics(NamedTuple):
    """Of the states of one person or the group."""

    occupancy: Array
    """(n_states,): share of the volumes."""
    dwell: Array
    """(n_states,): mean length of a visit in volumes; NaN for a state that is never visited."""
    transitions: Array
    """(n_states, n_states): share of the leavings of a state that lead to each other one; NaN without any."""


@dataclass(frozen=True, eq=False)
class BrainResult:
    """All that was found in a study."""

    study: Study
    settings: BrainSettings
    dictionary: Array
    """(n_atoms, n_regions)"""
    energy: Array
    """(n_atoms,): share of the codes' activity."""
    model: StateModel
    state_scores: Mapping[int, Array]
    """Log-likelihood per volume of each person by the states of others, for each number of states that was tried."""
    states: Sequence[Ints]
    """(time,) of each person."""
    certainty: Sequence[Array]
    """(time,) of each person: probability of the likeliest state."""
    patterns: Array
    """(n_states, n_regions): mean activity in each state, in standard deviations of a region."""
    steps: Sequence[Sequence[Step]]
    """Components of the atoms' graph over time, of each person."""
    starts: Sequence[Ints]
    """First volumes of the windows of each person."""
    errors: Array
    """(n_people, n_predictors, horizon): MSE / variance."""
    methods: Sequence[str]
    """What finds states here."""
    between: Array
    """(n_splits, n_methods, n_measures): matched correlation of states between halves of the people."""
    within: Array
    """(n_compared, n_methods, n_measures): the same between the halves of each person's time."""
    networks: Array
    """(n_splits,): matched correlation of the atoms between halves of the people."""
    foretold: Array
    """(n_splits,): how much likelier a volume of the other half is by our states than by a single one, in nats."""
    nulls: Mapping[str, Mapping[str, Array]]
    """Of surrogates, by kind, by our method alone: ``states`` (n_draws, n_measures), ``networks`` and ``foretold``
    (n_draws,), means over the first `NULL_SPLITS` splits."""
    within_nulls: Mapping[str, Array]
    """By kind (n_compared, n_measures), a draw for each person."""
    agreement: Mapping[str, float]
    """Adjusted Rand index of the states with the truth, by method, where the truth is known."""
    agreement_by_person: Mapping[str, Array]
    """The same of each person (n_compared,)."""

    @property
    def n_states(self) -> int:
        """K."""
        return self.model.n_states

    @property
    def seconds(self) -> float:
        """Of a volume; 1 where no TR is known, so that times are in volumes."""
        return self.study.tr or 1.0

    @property
    def unit(self) -> str:
        """Of times."""
        return "s" if self.study.tr else "volumes"

    # States

    def dynamics(self, person: int | None = None) -> Dynamics:
        """Occupancy, dwell times and transitions of a person, or of all."""
        chosen = self.states if person is None else [self.states[person]]
        return state_dynamics(chosen, self.n_states)

    # Reproducibility

    def state_measure(self, measure: str) -> dict[str, Interval]:
        """Matched correlation between halves of the people with its interval over splits, by method."""
        k = MEASURES.index(measure)
        return {name: mean_interval(self.between[:, i, k]) for i, name in enumerate(self.methods)}

    def ahead_of(self, rival: str, measure: str, *, within: bool = False) -> Interval:
        """Our matched correlation less a rival's, over splits or over people."""
        table, k = self.within if within else self.between, MEASURES.index(measure)
        if rival not in self.methods or not len(table):
            return mean_interval([])
        return mean_interval(table[:, 0, k] - table[:, self.methods.index(rival), k])

    def against(self, kind: str, measure: str) -> Measured:
        """What our states have between halves of the people, one of `MEASURES`, ``networks`` or ``foretold``, against
        draws of a surrogate by the same splits.
        """
        if not len(self.between):
            return Measured(np.nan, np.zeros(0))
        if measure in MEASURES:
            k = MEASURES.index(measure)
            values, null = self.between[:, 0, k], self.nulls[kind]["states"][:, k]
        else:
            values, null = getattr(self, measure), self.nulls[kind][measure]
        return Measured(float(np.mean(values[:NULL_SPLITS])), null)

    def within_against(self, kind: str, measure: str) -> Interval:
        """Our matched correlation between halves of a person's time less that of a surrogate, over people."""
        k = MEASURES.index(measure)
        if kind not in self.within_nulls or not len(self.within):
            return mean_interval([])
        return mean_interval(self.within[:, 0, k] - self.within_nulls[kind][:, k])

    # Files

    def prediction_rows(self) -> Iterator[tuple[str, str, int, float]]:
        """Lines of prediction.csv."""
        for subject, errors in zip(self.study.subjects, self.errors, strict=True):
            for name, own in zip(PREDICTORS, errors, strict=True):
                yield from ((subject.name, name, h + 1, float(error)) for h, error in enumerate(own))

    def state_rows(self) -> Iterator[tuple[str, int, float, int, float]]:
        """Lines of states.csv."""
        for subject, states, certainty in zip(self.study.subjects, self.states, self.certainty, strict=True):
            for t, (state, sure) in enumerate(zip(states, certainty, strict=True)):
                yield subject.name, t, t * self.seconds, int(state) + 1, round(float(sure), 4)

    def topology_rows(self) -> Iterator[tuple[str, int, float, int, int, str, int]]:
        """Lines of topology.csv."""
        for subject, steps, starts in zip(self.study.subjects, self.steps, self.starts, strict=True):
            for step in steps:
                centre = int(starts[step.window]) + self.settings.window // 2
                yield (
                    subject.name,
                    centre,
                    centre * self.seconds,
                    step.component + 1,
                    step.size,
                    step.event,
                    int(step.ends),
                )

    def topology_counts(self, person: int) -> dict[str, int]:
        """How many components of a person there are, and what became of them."""
        steps = self.steps[person]
        persistent, returned = lasting(steps, PATHS)
        events = [step.event for step in steps]
        return {
            "components": len({step.component for step in steps}),
            "births": events.count("birth"),
            "merges": events.count("merge"),
            "splits": events.count("split"),
            "returns": events.count("return"),
            "ends": sum(step.ends for step in steps),
            "persistent": len(persistent),
            "recurrent": len(returned),
        }

    def summary(self) -> dict[str, Any]:
        """Plain numbers for summary.json, without claims."""
        means = self.errors.mean(axis=0)
        return {
            "subjects": [subject.name for subject in self.study.subjects],
            "volumes": self.study.lengths,
            "regions": list(self.study.regions),
            "tr": self.study.tr,
            "remarks": list(self.study.remarks),
            "prediction": {
                name: {str(h + 1): float(error) for h, error in enumerate(own)}
                for name, own in zip(PREDICTORS, means, strict=True)
            },
            "n_states": self.n_states,
            "state_scores": {str(n): float(np.mean(score)) for n, score in self.state_scores.items()},
            "memory": self.model.memory,
            "states": {
                "group": _plain_dynamics(self.dynamics(), self.seconds),
                **{
                    subject.name: _plain_dynamics(self.dynamics(k), self.seconds)
                    for k, subject in enumerate(self.study.subjects)
                },
            },
            "time_unit": self.unit,
            "reproducibility": {
                "states_between_people": {
                    measure: {name: _plain_interval(own) for name, own in self.state_measure(measure).items()}
                    for measure in MEASURES
                },
                "states_within_person": {
                    measure: {
                        name: _plain_interval(mean_interval(self.within[:, i, k]))
                        for i, name in enumerate(self.methods)
                    }
                    for k, measure in enumerate(MEASURES)
                },
                "networks_between_people": _plain_interval(mean_interval(self.networks)),
                "against_surrogates": {
                    kind: {measure: self.against(kind, measure).summary() for measure in HELD_AGAINST}
                    for kind in self.nulls
                },
                "within_person_less_surrogates": {
                    kind: {measure: _plain_interval(self.within_against(kind, measure)) for measure in MEASURES[:2]}
                    for kind in self.within_nulls
                },
            },
            "agreement_with_truth": dict(self.agreement),
            "topology": {subject.name: self.topology_counts(k) for k, subject in enumerate(self.study.subjects)},
        }


def state_dynamics(people: Sequence[Ints], n_states: int) -> Dynamics:
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
    leavings = moves.sum(axis=1, keepdims=True)
    missing = np.full(n_states, np.nan)
    return Dynamics(
        occupancy=volumes / volumes.sum(),
        dwell=np.divide(volumes, visits, out=missing.copy(), where=visits > 0),
        transitions=np.divide(moves, leavings, out=np.full_like(moves, np.nan), where=leavings > 0),
    )


def _plain_dynamics(dynamics: Dynamics, seconds: float) -> dict[str, Any]:
    return {
        "occupancy": dynamics.occupancy.tolist(),
        "dwell": [plain(seconds * value) for value in dynamics.dwell],
        "transitions": [[plain(value) for value in row] for row in dynamics.transitions],
    }


def _plain_interval(interval: Interval) -> dict[str, float | None]:
    return {name: plain(value) for name, value in interval._asdict().items()}
