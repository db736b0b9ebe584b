"""All of a study: tasks per person, the group's states between them, and the comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from psmt.experiments.brain.components import follow_components, person_graphs
from psmt.experiments.brain.field import hmm_states, window_states
from psmt.experiments.brain.group import MAX_EPOCHS, cleaned, code_person, embed_group, sampled, split, unpacked
from psmt.experiments.brain.halves import MEASURES, NULL_SPLITS, compare_halves, halve_person, halvings, state_methods
from psmt.experiments.brain.prediction import predict_person
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.settings import STATE_CANDIDATES, BrainSettings
from psmt.experiments.brain.states import StateModel, choose_n_states, fewest_as_good, fit_states
from psmt.experiments.brain.study import Study
from psmt.experiments.brain.surrogates import SURROGATES
from psmt.experiments.coding_tasks import dictionary_task
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task
from psmt.types import Array, Ints, Result
from psmt.utils.threads import one_blas_thread

CHOSEN_ON = 24
"""People that the number of states is chosen on, at the most."""


def study_brains(study: Study, settings: BrainSettings, run: Run) -> BrainResult:
    """Everything that is asked of a study."""
    settings.check_lengths([subject.name for subject in study.subjects], study.lengths)
    run = replace(run, name="brain")
    with one_blas_thread():
        people = [cleaned(subject.values, study.tr, settings.high_pass) for subject in study.subjects]
        predicted = run.tasks(
            (
                Task(
                    f"brain-prediction-{k:04d}",
                    predict_person,
                    {"series": subject.values, "horizon": settings.horizon, "seed": settings.seed},
                )
                for k, subject in enumerate(study.subjects)
            ),
            "predictions",
        )
        dictionary, coded = _layers(people, settings, run)
        embedding = embed_group(coded, sum(study.lengths), dictionary, settings.n_components)
        points = [embedding.points(unpacked(one, settings.n_atoms)) for one in coded]
        model, scores = _states(points, settings, run)
        states = [model.shown(own) for own in points]
        graphs = run.tasks(
            [
                Task(
                    f"brain-graphs-{k:04d}",
                    person_graphs,
                    {
                        **{name: one[name] for name in ("values", "columns", "offsets")},
                        "n_atoms": settings.n_atoms,
                        "window": settings.window,
                        "step": settings.step,
                    },
                )
                for k, one in enumerate(coded)
            ],
            "graphs",
        )
        compared = _compared(people[: settings.n_compared], model.n_states, study, settings, run)
        return BrainResult(
            study=study,
            settings=settings,
            dictionary=dictionary,
            energy=_energy(coded),
            model=model,
            state_scores=scores,
            states=states,
            certainty=[model.probabilities(own).max(axis=1) for own in points],
            patterns=_mean_patterns(people, states, model.n_states),
            steps=[follow_components(one["component"]) for one in graphs],
            starts=[one["starts"] for one in graphs],
            errors=np.array([one["errors"] for one in predicted]),
            **compared,
            **_agreement(people, states, model.n_states, study, settings, run),
        )


def _layers(people: Sequence[Array], settings: BrainSettings, run: Run) -> tuple[Array, list[Result]]:
    """The group's dictionary, and the codes of each person with their moments."""
    (learned,) = run.tasks(
        [
            dictionary_task(
                sampled(people),
                n_atoms=settings.n_atoms,
                alpha=settings.alpha,
                max_epochs=MAX_EPOCHS,
                seed=settings.seed,
            )
        ],
        "dictionary",
    )
    dictionary = learned["dictionary"]
    tasks = [
        Task(f"brain-codes-{k:04d}", code_person, {"series": own, "dictionary": dictionary, "alpha": settings.alpha})
        for k, own in enumerate(people)
    ]
    return dictionary, run.tasks(tasks, "codes")


def _states(points: list[Array], settings: BrainSettings, run: Run) -> tuple[StateModel, dict[int, Array]]:
    """The group's states, and how well each number of them foretells other people."""
    scores: dict[int, Array] = {}
    given = {"seed": settings.seed}
    if settings.n_states == "auto":
        few = points[:CHOSEN_ON]
        inputs = {"points": np.concatenate(few), "lengths": [len(own) for own in few], **given}
        found = run.tasks(
            [Task(f"brain-states-{n:02d}", score_states, {**inputs, "n_states": n}) for n in STATE_CANDIDATES],
            "number of states",
        )
        scores = {n: one["scores"] for n, one in zip(STATE_CANDIDATES, found, strict=True)}
    n_states = fewest_as_good(scores) if settings.n_states == "auto" else settings.n_states
    inputs = {"points": np.concatenate(points), "lengths": [len(own) for own in points], **given}
    (fitted,) = run.tasks([Task("brain-states", learn_states, {**inputs, "n_states": n_states})], "states")
    return (
        StateModel(
            fitted["places"],
            fitted["covariance"],
            float(fitted["memory"]),
            fitted["transitions"],
            fitted["start"],
            float(fitted["log_likelihood"]),
        ),
        scores,
    )


def score_states(*, points: Array, lengths: list[int], n_states: int, seed: int) -> Result:
    """``scores`` (n_people,): see `choose_n_states`. One task."""
    return {"scores": choose_n_states(split(points, lengths), [n_states], seed=seed)[n_states]}


def learn_states(*, points: Array, lengths: list[int], n_states: int, seed: int) -> Result:
    """A `StateModel` of the trajectories (all volumes, n_components), by field. One task."""
    model = fit_states(split(points, lengths), n_states, seed=seed)
    return {name: np.asarray(value) for name, value in vars(model).items()}


def _energy(coded: Sequence[Result]) -> Array:
    """Share of the activity of all codes that each atom has (n_atoms,)."""
    total = np.sum([one["total"] for one in coded], axis=0)
    return np.asarray(total / max(float(total.sum()), 1e-300))


def _mean_patterns(people: Sequence[Array], states: Sequence[Ints], n_states: int) -> Array:
    """Mean of the volumes in each state (n_states, n_regions), without all people in one array."""
    sums, counts = np.zeros((n_states, people[0].shape[1])), np.zeros(n_states)
    for own, labels in zip(people, states, strict=True):
        np.add.at(sums, labels, own)
        counts += np.bincount(labels, minlength=n_states)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def _window(study: Study, settings: BrainSettings) -> int:
    """Volumes of a sliding window of correlations."""
    return max(8, round(settings.swc_seconds / (study.tr or 1.0)))


def _compared(people: list[Array], n_states: int, study: Study, settings: BrainSettings, run: Run) -> dict[str, Any]:
    """States of halves by all methods, and of surrogates by ours."""
    methods = state_methods()
    given: dict[str, Any] = {
        "n_states": n_states,
        "n_atoms": settings.n_atoms,
        "alpha": settings.alpha,
        "n_components": settings.n_components,
        "window": _window(study, settings),
        "seed": settings.seed,
    }
    ways = halvings(len(people), settings.n_splits, settings.seed)
    group = {"series": np.concatenate(people), "lengths": [len(own) for own in people], **given}

    def between(name: str, way: tuple[int, ...], kind: str, draw: int, own: list[str]) -> Task:
        inputs = {**group, "first": list(way), "kind": kind, "draw": draw, "methods": own}
        return Task(f"brain-halves-{name}", compare_halves, inputs)

    quick = [name for name in methods if name != "hmm"]
    # An HMM takes longer than all else together: it is fitted to the first split alone.
    found = run.tasks(
        [between(f"scan-{k:02d}", way, "scan", 0, quick if k else methods) for k, way in enumerate(ways)],
        "halves of the people",
    )
    draws = range(settings.n_surrogates) if ways else ()

    def null(kind: str) -> dict[str, Array]:
        tasks = [
            between(f"{kind}-{d:02d}-{k}", way, kind, d, ["psmt"])
            for d in draws
            for k, way in enumerate(ways[:NULL_SPLITS])
        ]
        done = run.tasks(tasks, f"surrogates, {kind}")
        if not done:
            return {name: np.zeros(0) for name in ("states", "networks", "foretold")}
        by_split = {
            "states": [one["states"][0] for one in done],
            **{name: [one[name] for one in done] for name in ("networks", "foretold")},
        }
        return {
            name: np.reshape(values, (len(draws), -1, *np.shape(values)[1:])).mean(axis=1)
            for name, values in by_split.items()
        }

    def within(kind: str, own: list[str]) -> Array:
        tasks = [
            Task(
                f"brain-person-{kind}-{k:04d}",
                halve_person,
                {"series": series, **given, "kind": kind, "draw": k, "methods": own},
            )
            for k, series in enumerate(people)
        ]
        return np.array([one["states"] for one in run.tasks(tasks, f"halves of a person, {kind}")])

    return {
        "methods": methods,
        "between": _filled([one["states"] for one in found], len(methods)),
        "networks": np.array([float(one["networks"]) for one in found]),
        "foretold": np.array([float(one["foretold"]) for one in found]),
        "nulls": {kind: null(kind) for kind in SURROGATES},
        "within": _filled(list(within("scan", quick)), len(methods)),
        "within_nulls": {kind: within(kind, ["psmt"])[:, 0] for kind in SURROGATES},
    }


def _filled(found: Sequence[Array], n_methods: int) -> Array:
    """Values (n, n_methods, n_measures) of arrays that have them of the first methods, NaN for the others."""
    filled = np.full((len(found), n_methods, len(MEASURES)), np.nan)
    for own, values in zip(filled, found, strict=True):
        own[: len(values)] = values
    return filled


def _agreement(
    people: Sequence[Array], states: Sequence[Ints], n_states: int, study: Study, settings: BrainSettings, run: Run
) -> dict[str, Any]:
    """Adjusted Rand index with the truth, where all people have one, by method: of all volumes, and of each person."""
    truths = [subject.truth for subject in study.subjects if subject.truth is not None][: settings.n_compared]
    if len(truths) < min(len(people), settings.n_compared):
        return {"agreement": {}, "agreement_by_person": {}}
    few = people[: settings.n_compared]
    inputs: dict[str, Any] = {
        "series": np.concatenate(few),
        "lengths": [len(own) for own in few],
        "n_states": n_states,
        "n_components": settings.n_components,
        "window": _window(study, settings),
        "seed": settings.seed,
    }
    others = [name for name in state_methods() if name != "psmt"]
    found = run.tasks([Task(f"brain-{name}", rival_states, {**inputs, "method": name}) for name in others], "rivals")
    labels = {"psmt": np.concatenate(states[: settings.n_compared])}
    labels |= {name: one["states"] for name, one in zip(others, found, strict=True)}
    truth, lengths = np.concatenate(truths), inputs["lengths"]
    by_person = {
        name: np.array([adjusted_rand_score(*pair) for pair in zip(truths, split(own, lengths), strict=True)])
        for name, own in labels.items()
    }
    return {
        "agreement": {name: float(adjusted_rand_score(truth, own)) for name, own in labels.items()},
        "agreement_by_person": by_person,
    }


def rival_states(
    *, series: Array, lengths: list[int], n_states: int, n_components: int, window: int, seed: int, method: str
) -> Result:
    """``states`` of all volumes by a method of the field. One task."""
    people = split(series, lengths)
    if method == "hmm":
        found = hmm_states(people, n_states, n_components=n_components, seed=seed)
    else:
        found = window_states(people, n_states, length=window, seed=seed)
    return {"states": np.concatenate(found)}
