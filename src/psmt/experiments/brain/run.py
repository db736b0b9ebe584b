"""Run `psmt brain`: tasks for each person, the states of the group, and the comparisons."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from psmt.brain import Course, fit_group, state_means
from psmt.brain.layers import join, split
from psmt.experiments.brain import reproducibility
from psmt.experiments.brain.components import follow_components, person_graphs
from psmt.experiments.brain.groups import compare_groups, contrasts
from psmt.experiments.brain.prediction import PREDICTORS, predict_person
from psmt.experiments.brain.reproducibility import GROUP_MEASURES, MEASURES, NULL_SPLITS
from psmt.experiments.brain.result import BrainResult
from psmt.experiments.brain.settings import PARAMETERS, BrainSettings
from psmt.experiments.brain.subjects import Study
from psmt.experiments.film_tasks import pack_codes
from psmt.pipeline.run import Run
from psmt.pipeline.tasks import Task
from psmt.types import Array, Result
from psmt.utils.threads import one_blas_thread


def study_brains(study: Study, settings: BrainSettings, run: Run) -> BrainResult:
    """Return all results for the people of a study. Tasks whose results are on disk are not computed again.

    If the study has a model that was learned before, it is applied to these people. Then nothing is learned or
    predicted, and only groups are compared.
    """
    settings.check_lengths(study.names, study.lengths)
    run = replace(run, name="brain")
    compute = partial(_each, run)
    predicted: list[Result] = []
    with one_blas_thread():
        if study.model is None:
            raw = ({"series": own, "horizon": settings.horizon, "seed": settings.seed} for own in study.series)
            predicted = compute("prediction", predict_person, raw, "predictions")
            given: dict[str, Any] = {name: getattr(settings, name) for name in PARAMETERS}
            how: dict[str, Any] = {"tr": study.tr, "regions": study.regions, "random_state": settings.seed}
            model = fit_group(study.series, **given, **how, compute=compute)
            courses, patterns = model.courses_, model.states_
        else:
            model = study.model
            settings.check_model(model)
            courses = model.transform(study.series, compute=compute)
            patterns = state_means(courses, model.n_states)
        of_graphs = {"n_atoms": settings.n_atoms, "window": settings.window, "step": settings.step}
        codes = ({"codes": pack_codes(course.codes), **of_graphs} for course in courses)
        graphs = compute("graphs", person_graphs, codes, "graphs")
        errors = np.array([one["errors"] for one in predicted]) if predicted else np.zeros((0, len(PREDICTORS), 1))
        result = BrainResult(
            study=study,
            settings=settings,
            model=model,
            courses=courses,
            patterns=patterns,
            steps=[follow_components(one["component"]) for one in graphs],
            starts=[one["starts"] for one in graphs],
            errors=errors,
        )
        tests = contrasts(study.participants)
        values = result.measures.values
        tasks = [{"values": values, "seed": settings.seed, **own} for own in tests.values()]
        found = compute("groups", compare_groups, tasks, "groups")
        result = replace(result, comparisons=dict(zip(tests, found, strict=True)))
        if study.model is not None:
            return result
        compared = _compare(courses[: settings.n_compared], model.n_states, study, settings, run)
        return replace(result, **compared)


def _each(
    run: Run, name: str, compute: Callable[..., Result], inputs: Iterable[Mapping[str, Any]], stage: str
) -> list[Result]:
    return run.tasks([Task(f"brain-{name}-{k:04d}", compute, own) for k, own in enumerate(inputs)], stage)


def _compare(
    courses: Sequence[Course], n_states: int, study: Study, settings: BrainSettings, run: Run
) -> dict[str, Any]:
    """Return fields of `BrainResult` by name: the agreement between halves, and with the true states if known.

    All methods are applied to the scans, and only PSMT to the surrogates.
    """
    people = [course.series for course in courses]
    methods = reproducibility.state_methods()
    fast = [name for name in methods if name != "hmm"]
    joined, seed = join(people), settings.seed
    window = max(8, round(settings.swc_seconds / (study.tr or 1.0)))
    of_windows = {"window": window, "seed": seed}
    (chosen,) = _each(run, "windows", reproducibility.window_number, [joined | of_windows], "sliding windows")
    own_states = {"n_states": n_states, "n_window_states": int(chosen["number"])}
    how: dict[str, Any] = {
        "layers": {name: getattr(settings, name) for name in ("n_atoms", "alpha", "n_components")},
        "states": {**own_states, **of_windows, "n_components": settings.n_components},
    }

    def scores(name: str, inputs: Iterable[dict[str, Any]], own: list[str], stage: str) -> dict[str, dict[str, Array]]:
        """Run `compare_halves` on all inputs. Return arrays of scores by measure and method in `own`."""
        found = _each(run, name, reproducibility.compare_halves, [how | one for one in inputs], stage)
        tables = [one["states"] for one in found]
        by_method = {
            measure: {name: np.array([table[i, k] for table in tables if i < len(table)]) for i, name in enumerate(own)}
            for k, measure in enumerate(MEASURES)
        }
        return by_method | {name: {"psmt": np.array([float(one[name]) for one in found])} for name in GROUP_MEASURES}

    halvings = reproducibility.halvings(len(people), settings.n_splits, seed)
    splits = [{**joined, "first": list(own)} for own in halvings]
    # The HMM takes longer than everything else together, so it is fitted to the first split only.
    scans = [{**own, "draw": None, "methods": fast if k else methods} for k, own in enumerate(splits)]
    halves = [{"series": own, "lengths": [len(own) // 2, -(-len(own) // 2)], "first": [0]} for own in people]
    within = [{**own, "draw": None, "methods": fast} for own in halves]
    draws = [
        {**own, "draw": k, "methods": ["psmt"]} for k in range(settings.n_surrogates) for own in splits[:NULL_SPLITS]
    ]
    null = scores("halves-phases", draws, ["psmt"], "surrogates") if splits else {}
    return {
        "between": scores("halves-scan", scans, methods, "halves of the people"),
        "within": scores("person-scan", within, methods, "halves of a person"),
        "nulls": {name: own["psmt"].reshape(settings.n_surrogates, -1).mean(axis=1) for name, own in null.items()},
        **_agreement(joined, courses, study, how["states"], run),
    }


def _agreement(
    joined: dict[str, Any], courses: Sequence[Course], study: Study, how: dict[str, Any], run: Run
) -> dict[str, Any]:
    """Return the fields of `BrainResult` on agreement with the true states, or {} if these are not known."""
    known = [truth for truth in study.truths[: len(courses)] if truth is not None]
    if len(known) < len(courses):
        return {}
    _, *others = reproducibility.state_methods()
    inputs = joined | how
    tasks = [Task(f"brain-{name}", reproducibility.rival_states, inputs | {"method": name}) for name in others]
    shown = np.concatenate([course.states for course in courses])
    hidden = np.concatenate([course.probabilities.argmax(axis=1) for course in courses])
    found = [{"states": shown, "hidden": hidden}, *run.tasks(tasks, "rivals")]
    labels = dict(zip(["psmt", *others], found, strict=True))
    blurred, chain = np.concatenate(known, axis=1)
    each = split(blurred, joined["lengths"])
    return {
        "agreement": {name: adjusted_rand_score(blurred, own["states"]) for name, own in labels.items()},
        "hidden_agreement": {name: adjusted_rand_score(chain, own["hidden"]) for name, own in labels.items()},
        "agreement_by_person": {
            name: np.array(list(map(adjusted_rand_score, each, split(own["states"], joined["lengths"]))))
            for name, own in labels.items()
        },
    }
