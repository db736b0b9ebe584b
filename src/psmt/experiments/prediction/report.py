"""The experiment `psmt predict`: its files, and its report with sections, tables, claims and the answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

from psmt.evaluation import METHODS, mse
from psmt.experiments.contract import Experiment
from psmt.experiments.prediction.figure import methods_figure, pipeline_figure, prediction_figure
from psmt.experiments.prediction.phase import INTERVAL, MethodErrors, Mode, PhaseResult, PredictionRow, mean_log_error
from psmt.experiments.prediction.run import MARGIN, SIMPLE, Pair, PredictionResult, predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import TIE, Answer, Claim, Column, Fact, Picture, Section, Table, to_csv
from psmt.report.numbers import error, listed, ratio, signed
from psmt.report.wording import in_rows
from psmt.types import Array


def prediction_sections(result: PredictionResult, _files: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report: one for each phase, one on rollouts, and one on all starts."""
    n_null = max((len(found) for found in result.nulls.values()), default=0)
    return [
        *(_phase_section(result, found) for found in result.phases),
        Section(
            title="Free-running predictions",
            text=["A rollout receives one frame and predicts all that follow from its own predictions."],
            tables=[
                methods_table(found.method_errors("rollouts"), f"Rollouts, phase “{found.phase.name}”")
                for found in result.phases
            ],
        ),
        Section(
            title="Over many starts, and without the order in time",
            text=[
                f"Two stretches are too few to decide a claim. So the claims are decided over {len(result.starts)} "
                "starts, no two with a predicted frame in common. At each start, all is learned again from earlier "
                f"frames, and all methods predict the same frames. Mean errors within {MARGIN:.0%} of each other are "
                "ties.",
                f"The same was done at {n_null} starts of two null models: the film with its frames shuffled, and "
                "noise with its spatial spectrum. There the past says nothing about the next frame, and the mean is "
                "the best prediction. What a method gains there does not come from prediction, so beyond controls a "
                "method must gain more on the film.",
            ],
            tables=[all_methods_table(result)],
        ),
    ]


def _phase_section(result: PredictionResult, found: PhaseResult) -> Section:
    # A picture per phase: two side by side, as in the file, are too small to read on a page.
    picture = _png(result, prediction_figure([found]))
    return Section(
        title=f"Prediction, phase “{found.phase.name}”",
        text=[
            f"All methods predict the {len(found.frames)} frames after frame {found.phase.start:,}, one step ahead. "
            "They have learned from earlier frames only.",
            "Layer 1 alone, coding and decoding the true frame, has an MSE of "
            f"{error(float(np.mean(mse(found.estimates, found.frames))))} vs frame. Every method that predicts codes "
            "has about this error in addition.",
        ],
        pictures=[Picture(picture, alt=f"Errors and patches of all methods, phase {found.phase.name}")],
        tables=[methods_table(found.method_errors(), "One-step predictions, means over steps")],
    )


def all_methods_table(result: PredictionResult) -> Table:
    """Return a table of the mean errors of all methods over all starts, lowest error first."""
    n = len(result.starts)
    return methods_table(result.ranking, f"One step ahead, means over {n} start{'s'[: n != 1]}, lowest error first")


def prediction_facts(result: PredictionResult) -> list[Fact]:
    """Return facts for the report: settings, n_components and lam of each phase, and the coverage of intervals."""
    chosen = "; ".join(f"{r.phase.name}: f = {r.n_components}, λ = {r.lam:g}" for r in result.phases)
    return [
        Fact("Prediction", f"{result.settings.text()} ({chosen}); {len(result.starts)} starts were used"),
        *(
            Fact(
                f"Intervals, {phase}",
                f"{INTERVAL:.0%} intervals of PSMT have {np.mean((low <= truth) & (truth <= high)):.0%} of the values",
            )
            for phase, (truth, _, low, high) in result.forecasts.items()
        ),
    ]


def methods_table(errors: Sequence[MethodErrors], caption: str) -> Table:
    """Return a table of the errors of all methods. Errors larger than that of copying are marked."""

    def times(value: float) -> str:
        return "1" if value == 1 else ratio(value)

    columns = [
        Column("method", lambda own: METHODS[own.method]),
        Column("MSE vs frame", "mse_vs_frame", error, best=min),
        Column("vs frame ÷ copying", "vs_copy", times, loses=lambda own: own.vs_copy > 1 + TIE),
        Column("MSE vs code", "mse_vs_code", error, best=min),
        Column("vs code ÷ copying", "vs_copy_code", times, loses=lambda own: own.vs_copy_code > 1 + TIE),
        Column("mean log MSE vs code", "log_mse_vs_code", signed, best=min),
    ]
    return Table.of(caption, errors, columns)


_RULE = (
    "the mean MSE {} is lower by more than "
    f"{MARGIN:.0%} over all starts, with 95% confidence. Beyond controls, it must be lower by more than on the film "
    "with its frames shuffled and on noise of its spectrum"
)

_CLAIMS = {
    "dynamic_beats_static": (
        "The dynamic embedding beats the static ones: PSMT against Baselines 1 and 2",
        _RULE.format("vs code of PSMT compared with that of both baselines") + ", and lower than that of the mean code",
    ),
    "beats_copying": (
        "PSMT beats copying the last code",
        _RULE.format("vs code of PSMT compared with those of the last code and of the mean code"),
    ),
    "gain_beats_copying": (
        "PSMT with a learned gain beats copying the last code",
        _RULE.format("vs code of PSMT with a learned gain compared with those of the last code and of the mean code"),
    ),
    "beats_simple_rules": (
        "PSMT beats the best simple rule on the same pixels",
        _RULE.format(
            "vs frame of the better PSMT rule compared with that of the best of "
            + listed([METHODS[name] for name in SIMPLE])
        ),
    ),
    "embedding_helps": (
        "The embedding helps: each PSMT rule against the same rule on the codes, without an embedding",
        _RULE.format("of both PSMT rules compared with those of their twins without an embedding, vs code and frame,"),
    ),
    "codes_help": (
        "The codes help: each rule on the codes against the same rule on the pixels",
        _RULE.format("vs frame of both rules compared with those of the same rules on the pixels"),
    ),
}


def prediction_claims(result: PredictionResult | None, note: str = "") -> list[Claim]:
    """Return the claims on one-step predictions, those of the paper first. Without a result, all are inconclusive."""
    return [
        Claim.from_evidence(
            key, *about, result.evidence[key] if result else [], paper=key == "dynamic_beats_static", notes=[note]
        )
        for key, about in _CLAIMS.items()
    ]


def prediction_answer(result: PredictionResult, files: Mapping[str, Any]) -> Answer:
    """Return the answer of the report: the method with the lowest error against true frames, and what to run next."""
    best, by_method = result.ranking[0], {own.method: own for own in result.ranking}
    copying, n = by_method["copy"], len(result.starts)
    over = f"mean MSE {{}} against {{}} over {n} start{'s'[: n != 1]}"
    psmt = min((by_method[name] for name in ("psmt", "psmt_gain")), key=lambda own: own.mse_vs_frame)
    name = METHODS[best.method]
    if copying.mse_vs_frame == 0:
        text = f"Nothing moves: copying the last patch has no error over {n} starts."
    elif best.method == "copy":
        text = (
            f"None of {len(result.ranking)} methods predicts the next patch better than copying the last one "
            f"(mean MSE {error(best.mse_vs_frame)} over {n} starts); the better PSMT rule has {ratio(psmt.vs_copy)} × "
            "its error."
        )
    else:
        found = result.compare(Pair((best.method,), ("copy",), "frame", is_control=True))
        clear = "" if found.as_measured.verdict == "yes" else ", which is not clearly better"
        text = (
            f"Of {len(result.ranking)} methods, “{name}” predicts the next patch best: {ratio(best.vs_copy)} × the "
            f"error of copying the last one{clear} "
            f"({over.format(error(best.mse_vs_frame), error(copying.mse_vs_frame))})"
        )
        text += "." if best is psmt else f"; the better PSMT rule has {ratio(psmt.vs_copy)} ×."
    pictures = [
        Picture(
            files["pipeline.png"],
            alt="Frame, patch, sparse code, path in the embedding, and predicted and true next patch",
            caption="How PSMT predicts, from left to right, at the start of the last phase.",
        ),
        Picture(
            files["methods.png"],
            alt="Error of every method divided by that of copying, vs frame and vs code",
            caption="Every method compared with copying, over all starts. Bars are 95% intervals.",
        ),
    ]
    return Answer(text, *_next_command(result, best.method), pictures)


def _next_command(result: PredictionResult, best: str) -> tuple[str, str]:
    """Return a command that may predict better, and the end of a sentence that says what it does."""
    settings = result.settings
    if best == "psmt_gain" and settings.extrapolation != "gain":
        return "predict {source} --extrapolation gain", "uses the learned gain in all comparisons"
    if not settings.series and best not in ("psmt", "psmt_gain"):
        return "predict-video {source}", "predicts whole frames by motion and context, which a patch does not show"
    if settings.series and best not in ("psmt", "psmt_gain") and settings.extrapolation != "dynamics":
        return "predict {source} --extrapolation dynamics", "learns a matrix from the window, as a regression does"
    return f"predict {{source}} --starts {2 * settings.n_starts}", "narrows the intervals with more starts"


def _run(values: Array, settings: PredictionSettings, run: Run, earlier: Mapping[str, Any]) -> PredictionResult:
    found = earlier.get("reconstruction")
    known = {} if found is None else {"errors": found.errors, "segment": found.sweep_segment}
    return predict(values, settings, run, **known)


def _table(result: PredictionResult, mode: Mode) -> bytes:
    """Return prediction.csv ('scores') or rollout.csv ('rollouts'), with a line per method and predicted patch."""
    return to_csv(PredictionRow._fields, (row for phase in result.phases for row in phase.rows(mode)))


def _forecast(result: PredictionResult) -> bytes:
    """Return forecast.csv: true values, PSMT's predictions one step ahead and their bounds, with times if known."""
    series = result.series
    times = series and series.times
    lines = (
        (phase.phase.name, step + 1, row, *(times[row : row + 1] if times else ()), name, *forecast[:, step, i])
        for phase in result.phases
        if (forecast := result.forecasts.get(phase.phase.name)) is not None
        for step, row in enumerate(range(phase.phase.start + 1, phase.phase.start + 1 + forecast.shape[1]))
        for i, name in enumerate((series and series.feature_names) or range(forecast.shape[2]))
    )
    time = ["time"] if times else []
    return to_csv(["phase", "step", "frame", *time, "feature", "truth", "predicted", "lower", "upper"], lines)


def _starts(result: PredictionResult) -> bytes:
    """Return starts.csv: the mean errors of each method at each start, on the film and on its null models."""
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


def _png(result: PredictionResult, figure: Figure, **options: Any) -> bytes:
    """Return a figure as a PNG file. For a series, its texts say rows and features instead of frames and pixels."""
    if result.settings.series:
        for text in figure.findobj(Text):
            text.set_text(in_rows(text.get_text()))
        for axes in figure.axes:
            axes.set_yticks(axes.get_yticks(), [in_rows(tick.get_text()) for tick in axes.get_yticklabels()])
    return png(figure, **options)


EXPERIMENT = Experiment[PredictionSettings, PredictionResult](
    run=_run,
    needs=lambda settings: () if settings.starts else ("reconstruction",),
    files={
        "prediction.csv": lambda result: _table(result, "scores"),
        "rollout.csv": lambda result: _table(result, "rollouts"),
        "forecast.csv": _forecast,
        "prediction.png": lambda result: _png(result, prediction_figure(result.phases), dpi=110),
        "starts.csv": _starts,
        "pipeline.png": lambda result: _png(result, pipeline_figure(result)),
        "methods.png": lambda result: _png(result, methods_figure(result)),
    },
    shown=lambda result: [all_methods_table(result), *prediction_claims(result)],
    answer=prediction_answer,
    claims=prediction_claims,
    sections=prediction_sections,
    facts=prediction_facts,
    summary=PredictionResult.summary,
    overview=lambda result: [all_methods_table(result)],
)
