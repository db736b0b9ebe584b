"""Result of `psmt brain`: predictions, components, states, and the reproducibility of the states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from psmt.brain import Course, GroupModel, StateDynamics, state_dynamics
from psmt.evaluation import Interval, mean_interval
from psmt.evaluation.null_models import LEVEL, NullTest
from psmt.experiments.brain.components import ComponentStep
from psmt.experiments.brain.groups import Measures, person_measures
from psmt.experiments.brain.prediction import PREDICTORS
from psmt.experiments.brain.reproducibility import MEASURES, NULL_SPLITS, split_interval
from psmt.experiments.brain.settings import BrainSettings
from psmt.experiments.brain.subjects import Study
from psmt.types import Array, Ints, Result


@dataclass(frozen=True, eq=False)
class BrainResult:
    """All results of `psmt brain`. The scores of agreement between two halves are those of `compare_halves`."""

    study: Study
    settings: BrainSettings
    model: GroupModel
    courses: Sequence[Course]
    """For each person, the trajectory and states that the model finds."""
    patterns: Array
    """(n_states, n_regions): mean activity of these people in each state, in standard deviations of a region."""
    steps: Sequence[Sequence[ComponentStep]]
    """Components of the graph of atoms over time, for each person."""
    starts: Sequence[Ints]
    """First volume of each window, for each person."""
    errors: Array = field(default_factory=lambda: np.zeros((0, len(PREDICTORS), 1)))
    """(n_people, n_predictors, horizon): mean squared error divided by the variance."""
    comparisons: Mapping[str, Result] = field(default_factory=dict)
    """Results of `compare_groups` for the tests ``group`` and ``motion``, in the order of `measures`."""
    between: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """Agreement (n_splits,) of halves of the people, by measure (`MEASURES` and `GROUP_MEASURES`) and method."""
    within: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """Agreement (n_compared,) of halves of each person's time, by measure and method."""
    nulls: Mapping[str, Array] = field(default_factory=dict)
    """PSMT's agreement (n_surrogates,) of halves of the people in each surrogate: means over splits, by measure."""
    agreement: Mapping[str, float] = field(default_factory=dict)
    """Adjusted Rand index with the true states, by method. It is empty if the true states are not known."""
    hidden_agreement: Mapping[str, float] = field(default_factory=dict)
    """Adjusted Rand index with the true states before the blood response delays and blurs them, by method."""
    agreement_by_person: Mapping[str, Array] = field(default_factory=dict)
    """Adjusted Rand index (n_compared,) of each person with the true states, by method."""

    @property
    def compared(self) -> bool:
        """Whether there are predictions and comparisons. They are left out if an earlier model was applied."""
        return bool(self.between)

    @property
    def people(self) -> str:
        """The number of people as text, such as '4 people'."""
        return "1 person" if len(self.courses) == 1 else f"{len(self.courses)} people"

    @property
    def states(self) -> list[Ints]:
        """For each person, the state (time,) of each volume."""
        return [course.states for course in self.courses]

    @property
    def n_states(self) -> int:
        """The number of states."""
        return self.model.n_states

    @property
    def n_splits(self) -> int:
        """Number of splits of the people into two halves. It is 0 for a single person."""
        return len(self.between["networks"]["psmt"])

    @property
    def n_compared(self) -> int:
        """Number of people on whose scans PSMT is compared with other methods and with surrogates."""
        return len(self.within["activity"]["psmt"])

    @property
    def seconds(self) -> float:
        """Repetition time (TR) in seconds, or 1 if it is not known, so that times are in volumes."""
        return self.study.tr or 1.0

    @property
    def unit(self) -> str:
        """Unit of times: 's', or 'volumes' if the repetition time (TR) is not known."""
        return "s" if self.study.tr else "volumes"

    @cached_property
    def mean_errors(self) -> dict[str, Array]:
        """Prediction error (horizon,), averaged over people, for each predictor."""
        return dict(zip(PREDICTORS, self.errors.mean(axis=0), strict=True))

    @cached_property
    def group_dynamics(self) -> StateDynamics:
        """Occupancy, dwell times and transitions of the states, for all people together."""
        return state_dynamics(self.states, self.n_states)

    @cached_property
    def person_dynamics(self) -> dict[str, StateDynamics]:
        """Occupancy, dwell times and transitions of the states of each person, by the person's name."""
        found = [state_dynamics([own], self.n_states) for own in self.states]
        return dict(zip(self.study.names, found, strict=True))

    @cached_property
    def measures(self) -> Measures:
        """Occupancy, dwell times, transitions and prediction errors of each person."""
        errors = self.errors[:, list(PREDICTORS).index("psmt"), 0]
        return person_measures(list(self.person_dynamics.values()), errors, self.seconds)

    @property
    def switching(self) -> float:
        """p-value of the test for states: is the gain in likelihood larger than in surrogates? NaN if not tested."""
        return self.surrogate_tests["likelihood_gain"].p_value if self.compared else np.nan

    @cached_property
    def between_means(self) -> dict[str, dict[str, Interval]]:
        """Agreement between halves of the people: means over all splits with intervals, by measure and method."""
        return {
            measure: {name: split_interval(own, self.n_compared) for name, own in inner.items()}
            for measure, inner in self.between.items()
        }

    @cached_property
    def within_means(self) -> dict[str, dict[str, Interval]]:
        """Agreement between halves of a person's time: means over people with intervals, by measure and method."""
        return {
            measure: {name: mean_interval(own, independent=True) for name, own in inner.items()}
            for measure, inner in self.within.items()
        }

    @cached_property
    def surrogate_tests(self) -> dict[str, NullTest]:
        """For each measure, a test: do halves of the people agree more on PSMT's states than halves of surrogates?"""
        return {
            name: NullTest(float(np.mean(scores["psmt"][:NULL_SPLITS])), self.nulls[name])
            if self.n_splits
            else NullTest(np.nan, np.zeros(0))
            for name, scores in self.between.items()
        }

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json, except the claims and the provenance."""
        found: dict[str, Any] = {
            "subjects": self.study.names,
            "volumes": self.study.lengths,
            "regions": self.study.regions,
            "tr": self.study.tr,
            "remarks": self.study.remarks,
            "n_states": self.n_states,
            "state_scores": {n: np.mean(score) for n, score in self.model.scores_.items()},
            "memory": self.model.chain_.memory,
            "states": {
                name: {**own._asdict(), "dwell": self.seconds * own.dwell}
                for name, own in {"group": self.group_dynamics, **self.person_dynamics}.items()
            },
            "time_unit": self.unit,
            "comparisons": {name: {**own, "measures": self.measures.labels} for name, own in self.comparisons.items()},
        }
        if not self.compared:
            return found
        return found | {
            "states_found": None if np.isnan(self.switching) else self.switching <= LEVEL,
            "prediction": {name: dict(enumerate(own, 1)) for name, own in self.mean_errors.items()},
            "reproducibility": {
                "states_between_people": {measure: self.between_means[measure] for measure in MEASURES},
                "states_within_person": {measure: self.within_means[measure] for measure in MEASURES},
                "networks_between_people": self.between_means["networks"]["psmt"],
                "against_surrogates": self.surrogate_tests,
            },
            "agreement_with_truth": self.agreement,
            "agreement_with_hidden_chain": self.hidden_agreement,
        }
