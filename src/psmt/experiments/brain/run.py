"""A whole study: tasks for each person, the states of the group between them, and the comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from psmt.experiments.brain import group, reproducibility
from psmt.experiments.brain.components import follow_components, person_graphs
from psmt.experiments.brain.group import join, split
from psmt.experiments.brain.prediction import predict_person
from psmt.experiments.brain.reproducibility import GROUP_MEASURES, MEASURES, SURROGATES
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.settings import STATE_CANDIDATES, BrainSettings
from psmt.experiments.brain.states import StateModel, choose_number, learn_states, score_states
from psmt.experiments.brain.subjects import Study
from psmt.experiments.coding_tasks import dictionary_task, unpack_codes
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task
from psmt.types import Array, Ints, Result
from psmt.utils.threads import one_blas_thread


def study_brains(study: Study, settings: BrainSettings, run: Run) -> BrainResult:
    """Run a study; results of tasks that are on disk are read."""
    settings.check_lengths(study.names, study.lengths)
    run = replace(run, name="brain")
    alpha, seed = settings.alpha, settings.seed
    with one_blas_thread():
        raw = [{"series": own, "horizon": settings.horizon, "seed": seed} for own in study.series]
        predicted = _each(run, "prediction", predict_person, raw, "predictions")
        people = [group.clean(own, study.tr, settings.high_pass) for own in study.series]
        given: dict[str, Any] = {"n_atoms": settings.n_atoms, "alpha": alpha, "seed": seed}
        learning = dictionary_task(group.training_volumes(people), max_epochs=group.MAX_EPOCHS, **given)
        dictionary = run.tasks([learning], "dictionary")[0]["dictionary"]
        series = [{"series": own, "dictionary": dictionary, "alpha": alpha} for own in people]
        coded = _each(run, "codes", group.code_person, series, "codes")
        matrix = group.embed_group(coded, sum(study.lengths), dictionary, settings.n_components)
        codes = [{name: one[name] for name in ("values", "columns", "offsets")} for one in coded]
        points = [group.trajectory(unpack_codes(**own, n_atoms=settings.n_atoms), matrix) for own in codes]
        model, scores = _fit_states(points, settings, run)
        states = [model.shown(own) for own in points]
        of_graphs = {"n_atoms": settings.n_atoms, "window": settings.window, "step": settings.step}
        graphs = _each(run, "graphs", person_graphs, [own | of_graphs for own in codes], "graphs")
        activity = np.sum([one["total"] for one in coded], axis=0)
        return BrainResult(
            study=study,
            settings=settings,
            dictionary=dictionary,
            energy=np.asarray(activity / max(float(activity.sum()), 1e-300)),
            model=model,
            state_scores=scores,
            states=states,
            certainty=[model.posterior(own)[0].max(axis=1) for own in points],
            patterns=_mean_patterns(people, states, model.n_states),
            steps=[follow_components(one["component"]) for one in graphs],
            starts=[one["starts"] for one in graphs],
            errors=np.array([one["errors"] for one in predicted]),
            **_compare(people[: settings.n_compared], states, model.n_states, study, settings, run),
        )


def _each(
    run: Run, name: str, compute: Callable[..., Result], inputs: Iterable[Mapping[str, Any]], stage: str
) -> list[Result]:
    return run.tasks([Task(f"brain-{name}-{k:04d}", compute, own) for k, own in enumerate(inputs)], stage)


def _fit_states(points: list[Array], settings: BrainSettings, run: Run) -> tuple[StateModel, dict[int, Array]]:
    """The states of the group, and the scores of each number of states that was tried."""
    scores: dict[int, Array] = {}
    n_states = settings.n_states
    if n_states == "auto":
        inputs = join(points[:24]) | {"seed": settings.seed}  # enough people to choose from
        tasks = [Task(f"brain-states-{n:02d}", score_states, {**inputs, "n_states": n}) for n in STATE_CANDIDATES]
        found = run.tasks(tasks, "number of states")
        scores = {n: one["scores"] for n, one in zip(STATE_CANDIDATES, found, strict=True)}
        n_states = choose_number(scores)
    inputs = join(points) | {"seed": settings.seed, "n_states": n_states}
    (fitted,) = run.tasks([Task("brain-states", learn_states, inputs)], "states")
    fields: dict[str, Any] = {name: value[()] for name, value in fitted.items()}
    return StateModel(**fields), scores


def _mean_patterns(people: Sequence[Array], states: Sequence[Ints], n_states: int) -> Array:
    """Mean of the volumes in each state (n_states, n_regions), without joining all people."""
    sums, counts = np.zeros((n_states, people[0].shape[1])), np.zeros(n_states)
    for own, labels in zip(people, states, strict=True):
        np.add.at(sums, labels, own)
        counts += np.bincount(labels, minlength=n_states)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def _compare(
    people: list[Array], states: Sequence[Ints], n_states: int, study: Study, settings: BrainSettings, run: Run
) -> dict[str, Any]:
    """Scores between halves, of all methods on scans and of ours on surrogates, and agreement with the true states."""
    methods, ours = reproducibility.state_methods(), ["psmt"]
    fast = [name for name in methods if name != "hmm"]
    shared = {"n_components": settings.n_components, "seed": settings.seed}
    window = max(8, round(settings.swc_seconds / (study.tr or 1.0)))
    how: dict[str, Any] = {
        "layers": {"n_atoms": settings.n_atoms, "alpha": settings.alpha, **shared},
        "states": {"n_states": n_states, "window": window, **shared},
    }

    def scores(name: str, inputs: Iterable[dict[str, Any]], own: list[str], stage: str) -> dict[str, dict[str, Array]]:
        """Scores (n,) by measure and method; results may have only the first methods."""
        found = _each(run, name, reproducibility.compare_halves, [how | one for one in inputs], stage)
        tables = [one["states"] for one in found]
        by_method = {
            measure: {name: np.array([table[i, k] for table in tables if i < len(table)]) for i, name in enumerate(own)}
            for k, measure in enumerate(MEASURES)
        }
        return by_method | {name: {"psmt": np.array([float(one[name]) for one in found])} for name in GROUP_MEASURES}

    joined = join(people)
    halvings = reproducibility.halvings(len(people), settings.n_splits, settings.seed)
    splits = [{**joined, "first": list(own)} for own in halvings]
    # The HMM takes longer than everything else together, so it is fitted to the first split only.
    scans = [{**own, "kind": "scan", "draw": 0, "methods": fast if k else methods} for k, own in enumerate(splits)]
    halves = [{"series": own, "lengths": [len(own) // 2, -(-len(own) // 2)], "first": [0]} for own in people]

    def within(kind: str, own: list[str], named: list[str]) -> dict[str, dict[str, Array]]:
        inputs = ({**half, "kind": kind, "draw": k, "methods": own} for k, half in enumerate(halves))
        return scores(f"person-{kind}", inputs, named, f"halves of a person, {kind}")

    def null(kind: str) -> dict[str, Array]:
        draws = [{"kind": kind, "draw": k, "methods": ours} for k in range(settings.n_surrogates)]
        inputs = (own | draw for draw in draws for own in splits[: reproducibility.NULL_SPLITS])
        found = scores(f"halves-{kind}", inputs, ours, f"surrogates, {kind}")
        return {name: own["psmt"].reshape(len(draws), -1).mean(axis=1) for name, own in found.items()}

    return {
        "between": scores("halves-scan", scans, methods, "halves of the people"),
        "nulls": {kind: null(kind) for kind in SURROGATES} if splits else {},
        "within": within("scan", fast, methods),
        "within_nulls": {
            kind: {name: own["psmt"] for name, own in within(kind, ours, ours).items()} for kind in SURROGATES
        },
        **_agreement(joined, states[: len(people)], study, how["states"], run),
    }


def _agreement(
    joined: dict[str, Any], states: Sequence[Ints], study: Study, how: dict[str, Any], run: Run
) -> dict[str, Any]:
    """Adjusted Rand index with the true states by method, of all volumes and of each person; empty without a truth."""
    known = [truth for truth in study.truths[: len(states)] if truth is not None]
    if len(known) < len(states):
        return {"agreement": {}, "agreement_by_person": {}}
    _, *others = reproducibility.state_methods()
    inputs = joined | how
    tasks = [Task(f"brain-{name}", reproducibility.rival_states, inputs | {"method": name}) for name in others]
    found = [own["states"] for own in run.tasks(tasks, "rivals")]
    labels = dict(zip(["psmt", *others], [np.concatenate(states), *found], strict=True))
    return {
        "agreement": {name: float(adjusted_rand_score(np.concatenate(known), own)) for name, own in labels.items()},
        "agreement_by_person": {
            name: np.array(list(map(adjusted_rand_score, known, split(own, joined["lengths"]))))
            for name, own in labels.items()
        },
    }
