"""The prediction as an experiment, and its report: sections, tables, and claims decided over many starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from psmt.evaluation import METHODS, mse
from psmt.evaluation.null_models import NULL_NAMES
from psmt.experiments.contract import Experiment
from psmt.experiments.phases import describe_motion
from psmt.experiments.prediction.figure import effects_figure, prediction_figure
from psmt.experiments.prediction.phase import Mode, PhaseResult, PredictionRow, Truth, mean_log_error
from psmt.experiments.prediction.run import COPYING, MARGIN, TRIVIAL, PredictionResult, count_wins, predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import TIE, Cell, Claim, Column, Evidence, Fact, Picture, Section, Table, to_csv, write_interval
from psmt.report.numbers import error, log_ratio, ratio, signed
from psmt.types import Array


def prediction_sections(result: PredictionResult, pictures: Sequence[bytes], effects: bytes) -> list[Section]:
    """Sections on each phase, with one PNG file each, on rollouts, and on all starts, with the PNG file `effects`."""
    phases = result.phases
    motion = describe_motion(result.motion, [found.phase for found in phases], horizon=result.settings.horizon)
    n_null = max((len(found) for found in result.nulls.values()), default=0)
    return [
        *(
            Section(
                title=f"Prediction, phase “{found.phase.name}”",
                text=[
                    f"All methods predict the {len(found.frames)} frames after frame {found.phase.start:,}, one step "
                    f"ahead. They have learned from earlier frames only. {motion}",
                    "Layer 1 alone, coding and decoding the true frame, has an MSE of "
                    f"{error(float(np.mean(mse(found.estimates, found.frames))))} vs frame. Every method that predicts "
                    "codes has about this error in addition.",
                ],
                pictures=[Picture(picture, alt=f"Errors and patches of all methods, phase {found.phase.name}")],
                tables=[methods_table(found, "scores", "One-step predictions, means over steps")],
            )
            for found, picture in zip(phases, pictures, strict=True)
        ),
        Section(
            title="Free-running predictions",
            text=["A rollout receives one frame and predicts all that follow from its own predictions."],
            tables=[methods_table(found, "rollouts", f"Rollouts, phase “{found.phase.name}”") for found in phases],
        ),
        Section(
            title="Over many starts, and without the order in time",
            text=[
                f"Two stretches are too few to decide a claim. So the claims are decided over {len(result.starts)} "
                "starts, no two with a predicted frame in common. At each start, all is learned again from earlier "
                "frames, and all methods predict the same frames. Differences of log MSE within "
                f"{MARGIN:g} are ties.",
                f"The same was done at {n_null} starts of two null models: the film with its frames shuffled, and "
                "noise with its spatial spectrum. There the past says nothing about the next frame, and the mean is "
                "the best prediction. What a method gains there does not come from prediction, so a claim holds only "
                "if the method gains more on the film.",
            ],
            pictures=[Picture(effects, alt="Differences of log MSE on the film and on the null models")],
            tables=[effects_table(result), starts_table(result)],
        ),
    ]


def effects_table(result: PredictionResult) -> Table:
    """A row per comparison behind the claims."""

    def ratio_on(own: Evidence, film: str) -> Cell:
        interval = {"the film": own.statistic, **own.nulls}.get(film)
        if interval is None:
            return Cell("–")
        lost = film == "the film" and own.as_measured == "does not hold"
        return Cell(f"{log_ratio(interval.mean)} {write_interval(interval, log_ratio)}", "loses" if lost else "")

    return Table.of(
        "Error ÷ error of the other method, geometric mean over all starts, 95% intervals in brackets: below 1 the "
        "first method is better",
        [own for group in result.evidence.values() for own in group],
        [
            Column("comparison", "name"),
            *(Column(f"on {film}", partial(ratio_on, film=film)) for film in ("the film", *NULL_NAMES.values())),
            Column("in log MSE", "statistic.mean", signed),
            Column("starts won", lambda own: f"{count_wins(np.asarray(own.values))} of {own.n}"),
            Column("verdict", "verdict"),
        ],
    )


def starts_table(result: PredictionResult) -> Table:
    """Mean log MSE vs code of each method over all starts, on the film and on each null model."""
    means = {
        film: {method: float(np.mean([mean_log_error(one, method, "code") for one in found])) for method in METHODS}
        for film, found in result.films.items()
        if found
    }
    return Table.of(
        "Mean log MSE vs code over all starts, on the film and on the null models",
        sorted(METHODS, key=means["the film"].__getitem__),
        [
            Column("method", METHODS.__getitem__),
            *(Column(film, own.__getitem__, signed, best=min) for film, own in means.items()),
        ],
    )


def prediction_facts(result: PredictionResult) -> list[Fact]:
    """Sizes and penalties, with those chosen in each phase."""
    settings = result.settings
    chosen = "; ".join(f"{r.phase.name}: f = {r.n_components}, λ = {r.lam:g}" for r in result.phases)
    return [
        Fact(
            "Prediction",
            f"M = {settings.n_atoms:,}, H = {settings.window:,}, K = {settings.horizon}, "
            f"α = {settings.alpha:g}, f {settings.n_components}, λ {settings.lam} ({chosen}); "
            f"{len(result.starts)} starts, {settings.n_null} on each null model",
        )
    ]


def phase_table(result: PhaseResult, motion: float) -> Table:
    """One-step predictions of a phase; the caption says which frames they are, and how much they move."""
    start, horizon = result.phase.start, len(result.frames)
    caption = (
        f"{result.phase.name}: frames {start + 1} to {start + horizon}, f = {result.n_components}, "
        f"lam = {result.lam:g}, motion {motion:.3g} of the contrast per frame"
    )
    return methods_table(result, "scores", caption)


def methods_table(result: PhaseResult, mode: Mode, caption: str) -> Table:
    """Errors of all methods in one phase; lost comparisons with copying are marked."""

    def times(value: float) -> str:
        return "1" if value == 1 else ratio(value)

    columns = [
        Column("method", lambda own: METHODS[own.method]),
        Column("log MSE vs code", "log_mse_vs_code", signed, best=min),
        Column("MSE vs code", "mse_vs_code", error, best=min),
        Column("vs code ÷ copying", "vs_copy_code", times, loses=lambda own: own.vs_copy_code > 1 + TIE),
        Column("MSE vs frame", "mse_vs_frame", error, best=min),
        Column("vs frame ÷ copying", "vs_copy", times, loses=lambda own: own.vs_copy > 1 + TIE),
    ]
    # Log MSE is the measure of the paper; comparisons with copying come next.
    return Table.of(caption, result.method_errors(mode), columns, key=(1, 5, 3, 4))


_RULE = (
    "{}. Errors are compared at each start. The mean must be lower by more than "
    f"{MARGIN:g} in log MSE, with 95% confidence, and by more than on two null models: the same film with its frames "
    "shuffled, and noise of its spectrum"
)


def prediction_claims(result: PredictionResult | None, note: str = "") -> list[Claim]:
    """Claims on one-step predictions: the paper's claim, then PSMT and its learned gain against copying."""
    asked: dict[str, tuple[str, str, tuple[str, ...], Truth]] = {
        "dynamic_beats_static": (
            "The dynamic embedding beats the static ones: PSMT against Baselines 1 and 2",
            "the mean log MSE vs code of PSMT is lower than that of both baselines, and than that of the mean code",
            ("psmt", "baseline1", "baseline2", "mean_code"),
            "code",
        )
    }
    for key, (method, truth) in COPYING.items():
        text = f"{METHODS[method]}, beats copying the last {truth}".replace("PSMT, beats", "PSMT beats")
        rule = f"its mean log MSE vs {truth} is lower than those of the last {truth} and the mean {truth}"
        asked[key] = (text, rule, (method, *TRIVIAL[truth]), truth)
    claims = []
    for key, (text, rule, methods, truth) in asked.items():
        evidence = [] if result is None else result.evidence[key]
        hardest = min(evidence, key=lambda own: own.strength, default=None)
        other = hardest.name.partition(" against ")[2].removesuffix(f", vs {truth}") if hardest else ""
        errors = {
            found.phase.name: {method: mean_log_error(found, method, truth) for method in methods}
            for found in (() if result is None else result.phases)
        }
        notes = [
            f"phase “{phase}”, mean log MSE vs {truth}: "
            + ", ".join(f"{METHODS[method]} {signed(value)}" for method, value in own.items())
            for phase, own in errors.items()
        ]
        claim = Claim.from_evidence(
            key,
            text,
            _RULE.format(rule),
            evidence,
            paper=key not in COPYING,
            size=f"{hardest.estimate} of {other}" if hardest else "",
            notes=[note, *notes],
            figures={own.name: own.summary() for own in evidence} | {"phases": errors},
        )
        claims.append(claim)
    return claims


def _run(values: Array, settings: PredictionSettings, run: Run, earlier: Mapping[str, Any]) -> PredictionResult:
    found = earlier.get("reconstruction")
    return predict(values, settings, run, errors=None if found is None else found.errors)


def _table(result: PredictionResult, mode: Mode) -> bytes:
    """One line per predicted patch."""
    return to_csv(PredictionRow._fields, (row for phase in result.phases for row in phase.rows(mode)))


def _starts(result: PredictionResult) -> bytes:
    """starts.csv: one line per start and method, on the film and on its null models."""
    films = {"film": result.starts, **result.nulls}
    lines = (
        (
            film,
            found.phase.start,
            method,
            mean_log_error(found, method, "code"),
            float(score.vs_code.mean()),
            mean_log_error(found, method, "frame"),
            float(score.vs_frame.mean()),
        )
        for film, results in films.items()
        for found in results
        for method, score in found.scores.items()
    )
    columns = ("film", "start", "method", "log_mse_vs_code", "mse_vs_code", "log_mse_vs_frame", "mse_vs_frame")
    return to_csv(columns, lines)


def _sections(result: PredictionResult, files: Mapping[str, bytes]) -> Sequence[Section]:
    # A picture per phase: two side by side, as in the file, are too small to read on a page.
    pictures = [png(prediction_figure([phase])) for phase in result.phases]
    return prediction_sections(result, pictures, files["starts.png"])


def _tables(result: PredictionResult) -> list[Table]:
    return [phase_table(phase, result.phase_motions[phase.phase.name]) for phase in result.phases]


EXPERIMENT = Experiment[PredictionSettings, PredictionResult](
    run=_run,
    needs=lambda settings: () if settings.starts else ("reconstruction",),
    files={
        "prediction.csv": lambda result: _table(result, "scores"),
        "rollout.csv": lambda result: _table(result, "rollouts"),
        "prediction.png": lambda result: png(prediction_figure(result.phases), dpi=110),
        "starts.csv": _starts,
        "starts.png": lambda result: png(effects_figure(result)),
    },
    shown=lambda result: [*_tables(result), *prediction_claims(result)],
    claims=prediction_claims,
    sections=_sections,
    facts=prediction_facts,
    summary=PredictionResult.summary,
    overview=_tables,
)
