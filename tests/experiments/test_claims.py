"""Verdicts follow from the numbers by the stated rules, and everything for and against is named."""

from dataclasses import replace

import numpy as np
import pytest

from psmt.evaluation import METHODS
from psmt.experiments.prediction.report import all_methods_table, prediction_answer, prediction_claims
from psmt.experiments.sweep.report import sweep_claims
from psmt.experiments.sweep.settings import SweepSettings

INCONCLUSIVE = "inconclusive"


def grid(*rows: tuple[float, ...]) -> dict[tuple[int, int], float]:
    """Errors by (M, H) for M = 8, 16, .. and H = 2, 2.5 and 3 M."""
    sizes = [8 * 2**i for i in range(len(rows))]
    return {
        (size, int(ratio * size)): error
        for size, row in zip(sizes, rows, strict=True)
        for ratio, error in zip((2, 2.5, 3), row, strict=False)
    }


# The sweep


def more_atoms(*given):
    return sweep_claims(*given)[0]


def more_frames(*given):
    return sweep_claims(*given)[1]


@pytest.mark.parametrize(
    ("rows", "atoms", "frames"),
    [
        (((0.9, 0.7, 0.4), (0.5, 0.4, 0.3)), "yes", "yes"),
        (((0.4, 0.4, 0.4), (0.5, 0.3, 0.3)), "no", INCONCLUSIVE),
        (((0.4, 0.6, 0.397), (0.3, 0.3, 0.1)), "yes", INCONCLUSIVE),  # a tie: closer than 1%
        (((0.4, 0.6, 0.41), (0.3, 0.3, 0.1)), "yes", "no"),
        (((0.4, 0.3, 0.2),), INCONCLUSIVE, "yes"),
        (((0.4,), (0.3,)), "yes", INCONCLUSIVE),
    ],
)
def test_table_1_decides(make_sweep, rows, atoms, frames):
    errors = grid(*rows)
    result = make_sweep(errors, n_atoms=tuple(dict.fromkeys(size for size, _ in errors)))
    assert (more_atoms(result).as_measured.verdict, more_frames(result).as_measured.verdict) == (atoms, frames)


def test_what_speaks_against_a_claim_that_holds_is_named(make_sweep):
    # The paper's own row of 2048 atoms: lower at the end, not at every step.
    claim = more_frames(make_sweep({(8, 16): 0.195, (8, 20): 0.309, (8, 24): 0.190}, n_atoms=(8,)))
    assert claim.as_measured.verdict == "yes"
    assert claim.as_measured.ratio == pytest.approx(0.190 / 0.195)
    assert claim.size == "0.97 × the error, λ = 0.1, M = 8"
    (line,) = claim.support
    assert "MSE 0.195 (H = 16) → 0.309 (H = 20) → 0.190 (H = 24)" in line and "0.97 × the error" in line
    assert "not lower at every step" in line


def test_the_lam_whose_errors_are_nearest_to_the_papers_decides_both_claims(make_sweep):
    falling = {(8, 16): 0.9, (8, 24): 0.3, (16, 32): 0.8, (16, 48): 0.2}
    rising = {(8, 16): 0.02, (8, 24): 0.04, (16, 32): 0.02, (16, 48): 0.04}
    result = make_sweep(rising, n_atoms=(8, 16), others={3.0: falling, 30.0: rising})
    for claim in sweep_claims(result):
        assert claim.as_measured.verdict == "yes"
        assert {lam: own["decides"] for lam, own in claim.figures.items()} == {"0.1": False, "3": True, "30": False}
        assert any("judged at λ = 3: there the errors are nearest" in line for line in claim.notes)
    frames = more_frames(result)
    assert frames.figures["3"]["λ = 3, M = 8"]["estimate"]["mean"] == pytest.approx(np.log(1 / 3))
    assert sum(line.startswith("no: λ = ") for line in frames.notes) == 4
    assert more_frames(make_sweep(rising, n_atoms=(8, 16), others={3.0: rising})).as_measured.verdict == "no"


def test_where_nothing_comes_back_nothing_is_compared(make_sweep):
    # At λ = 30 every picture is empty, so that its error, 1, is the nearest to the paper's of the two.
    empty, falling = {(8, 16): 0.98, (8, 24): 0.99}, {(8, 16): 0.02, (8, 24): 0.01}
    result = replace(make_sweep(falling, n_atoms=(8,), others={30.0: empty}), empty_error=1.0)
    claim = more_frames(result)
    assert (claim.as_measured.verdict, result.decisive_lam) == ("yes", 0.1)
    assert any("nothing is reconstructed" in line for line in claim.notes)
    nothing = more_frames(replace(make_sweep(empty, n_atoms=(8,)), empty_error=1.0))
    assert (nothing.as_measured.verdict, nothing.size) == (INCONCLUSIVE, "")


def test_the_verdict_is_on_the_numbers_of_table_1(make_sweep):
    # Frames with next to no error lose a factor of three, all others win a tenth: the trimmed mean falls.
    short = np.where(np.arange(24) % 3 == 0, 1e-4, 0.5)
    longer = np.where(np.arange(24) % 3 == 0, 3e-4, 0.45)
    result = make_sweep({(8, 20): np.resize(short, 20), (8, 24): longer}, n_atoms=(8,))
    claim = more_frames(result)
    assert claim.as_measured.verdict == "yes"
    means = {entry.window: entry.trimmed_mean for entry in result.table()}
    estimate = claim.figures["0.1"]["λ = 0.1, M = 8"]["estimate"]["mean"]
    assert estimate == pytest.approx(np.log(means[24] / means[20]))


def test_what_a_few_stretches_decide_cannot_be_told(make_sweep):
    # Over all frames the longer window is better by a tenth, but all of it comes from one of three stretches.
    settings = SweepSettings(n_atoms=(8,))
    frames = np.ones(300)
    frames[100:200] = 0.5
    places = settings.segments(24, 300)
    errors = np.array([frames[start:stop] for start, stop in places])
    few = more_frames(make_sweep({(8, 16): 1.0, (8, 24): errors}, n_atoms=(8,), n_frames=300))
    assert few.as_measured.verdict == INCONCLUSIVE
    estimate = few.figures["0.1"]["λ = 0.1, M = 8"]["estimate"]
    assert estimate["low"] < estimate["mean"] < np.log(0.95) and estimate["high"] > np.log(0.99)
    all_over = more_frames(make_sweep({(8, 16): 1.0, (8, 24): np.full_like(errors, 0.8)}, n_atoms=(8,), n_frames=300))
    assert all_over.as_measured.verdict == "yes"


def test_untrimmed_means_that_disagree_are_named(make_sweep):
    wild = np.full(32, 0.1)
    wild[:2] = 50.0  # within the trimmed quarter
    result = make_sweep({(8, 24): 0.2, (16, 32): wild, (8, 16): 0.2}, n_atoms=(8, 16))
    claim = more_atoms(result)
    assert claim.as_measured.verdict == "yes"
    assert "the untrimmed mean goes from 0.200 to 3.22" in claim.support[0]


def test_a_film_too_short_for_the_sweep_gives_the_reason():
    claim = more_atoms(None, "the film has 30 frames")
    for judged in (claim.as_measured, claim.beyond_controls):
        assert (judged.verdict, judged.why) == (INCONCLUSIVE, "the film has 30 frames")


# Prediction

GOOD = {"psmt": 0.1, "psmt_gain": 0.1, "baseline2": 0.2, "baseline1": 0.3}


def claim_on(result, key="dynamic_beats_static"):
    return {claim.key: claim for claim in prediction_claims(result)}[key]


def outcome_of(result, key="dynamic_beats_static"):
    claim = claim_on(result, key)
    return claim.as_measured.verdict, claim.beyond_controls.verdict


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3}, ("yes", "yes")),
        ({"psmt": 0.1, "baseline2": 0.3, "baseline1": 0.2}, ("yes", "yes")),
        ({"psmt": 0.2, "baseline2": 0.1, "baseline1": 0.3}, ("no", "no")),
        ({"psmt": 0.2, "baseline2": 0.2, "baseline1": 0.3}, (INCONCLUSIVE, INCONCLUSIVE)),
        ({"psmt": 0.199, "baseline2": 0.2, "baseline1": 0.3}, (INCONCLUSIVE, INCONCLUSIVE)),  # within the margin
        # The paper does not compare with the mean: it is a control.
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3, "mean_code": 0.05}, ("yes", "no")),
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3, "mean_code": 0.1}, ("yes", INCONCLUSIVE)),
    ],
)
def test_dynamic_against_static_and_the_mean(make_prediction, errors, outcome):
    assert outcome_of(make_prediction(**errors)) == outcome


def test_effects_and_their_size_are_named(make_prediction):
    claim = claim_on(make_prediction(**GOOD))
    line = next(line for line in claim.support if "Baseline 2" in line)
    assert "0.50 × the error, −0.69 in mean log MSE, lower at 8 of 8 starts" in line
    assert "1.0000 on its frames shuffled" in line and "on noise of its spectrum" in line
    assert claim.as_measured[:4] == ("yes", *[pytest.approx(0.5)] * 3)
    assert "PSMT against Baseline 2, vs code" in claim.as_measured.why
    figures = claim.figures["PSMT against Baseline 2, vs code"]
    assert (figures["n"], figures["as_measured"]["verdict"]) == (8, "yes")
    assert figures["estimate"]["mean"] == pytest.approx(np.log(0.5))


def test_ratios_are_of_mean_errors_and_not_of_their_logarithms(make_prediction):
    # Calm starts lose by a lot in logarithms, lively ones decide the mean error.
    psmt, static = np.tile([1e-5, 0.5], 6), np.tile([1e-6, 1.0], 6)
    claim = claim_on(make_prediction(n_starts=12, psmt=psmt, psmt_gain=1.0, baseline2=static, baseline1=static))
    assert (claim.as_measured.verdict, claim.as_measured.ratio) == ("yes", pytest.approx(0.5, rel=1e-3))
    assert "0.80 in mean log MSE" in claim.support[0]


@pytest.mark.parametrize(
    ("null", "outcome"),
    [
        ({"psmt": 0.95}, "yes"),  # a little is won there too
        ({"psmt": 0.5}, INCONCLUSIVE),  # as much as on the film
        ({"psmt": 0.2}, "no"),  # more
    ],
)
def test_what_is_won_without_order_in_time_counts_as_measured_alone(make_prediction, null, outcome):
    claim = claim_on(make_prediction(null, **GOOD))
    assert (claim.as_measured.verdict, claim.beyond_controls.verdict) == ("yes", outcome)
    assert "its frames shuffled" in claim.beyond_controls.why or "noise of its spectrum" in claim.beyond_controls.why
    # The ratio beyond controls is that of the film divided by that of the control.
    assert claim.beyond_controls.ratio == pytest.approx(0.5 / null["psmt"])


def test_starts_that_disagree_cannot_be_told(make_prediction):
    errors = np.tile([0.1, 0.4], 4)
    outcome = outcome_of(make_prediction(psmt=errors, baseline2=0.2, baseline1=0.5))
    assert outcome == (INCONCLUSIVE, INCONCLUSIVE)


def test_a_few_starts_tell_nothing_and_that_is_the_reason(make_prediction):
    claim = claim_on(make_prediction(n_starts=2, **GOOD))
    assert claim.as_measured.verdict == INCONCLUSIVE
    assert "fewer than 6 starts" in claim.as_measured.why


def test_without_nulls_nothing_is_beyond_them(make_prediction):
    assert outcome_of(make_prediction(n_null=2, **GOOD)) == ("yes", INCONCLUSIVE)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(0.1, "yes"), (0.2, INCONCLUSIVE), (0.197, INCONCLUSIVE), (0.19, "yes"), (0.3, "no")],
)
@pytest.mark.parametrize("key", ["beats_copying", "gain_beats_copying", "beats_simple_rules"])
def test_copying_must_be_beaten_by_more_than_a_tie(make_prediction, key, error, outcome):
    result = make_prediction({"copy": 2.0, "copy_code": 2.0}, copy=0.2, copy_code=0.2, psmt=error, psmt_gain=error)
    assert outcome_of(result, key) == (outcome, outcome)
    assert not claim_on(result, key).paper


def test_the_best_simple_rule_counts(make_prediction):
    result = make_prediction(psmt=0.3, psmt_gain=0.2, copy=0.5, ridge=0.001)
    claim = claim_on(result, "beats_simple_rules")
    assert (claim.as_measured.verdict, claim.as_measured.ratio) == ("no", pytest.approx(200))
    assert "PSMT, learned gain against ridge regression" in claim.as_measured.why


def test_who_beats_copying_but_not_the_mean_has_not_predicted_anything(make_prediction):
    result = make_prediction(psmt=0.5, mean=0.3, mean_code=0.3)
    assert outcome_of(result, "beats_copying") == ("no", "no")


def test_an_ablation_is_judged_rule_by_rule(make_prediction):
    both = {"psmt": 0.1, "code_line": 0.2, "psmt_gain": 0.1, "code_gain": 0.2}
    assert outcome_of(make_prediction(**both), "embedding_helps") == ("yes", "yes")
    worse = claim_on(make_prediction(**both | {"code_gain": 0.05}), "embedding_helps")
    assert (worse.as_measured.verdict, worse.as_measured.ratio) == ("no", pytest.approx(2.0))
    assert METHODS["code_gain"] in worse.as_measured.why
    codes = {"code_line": 0.2, "linear": 0.4, "code_gain": 0.1, "pixel_gain": 0.3}
    assert outcome_of(make_prediction(**codes), "codes_help") == ("yes", "yes")


def test_without_a_result_nothing_can_be_told():
    for claim in prediction_claims(None, "the film has 100 frames"):
        assert claim.notes == ("the film has 100 frames",)
        for judged in (claim.summary()["as_measured"], claim.summary()["beyond_controls"]):
            assert (judged["verdict"], judged["why"]) == (INCONCLUSIVE, "the film has 100 frames")


# The answer


@pytest.mark.parametrize(
    ("errors", "words", "command"),
    [
        ({"ridge": 0.002, "psmt": 4.6, "psmt_gain": 2.0}, ["“ridge regression”", "0.002 ×", "2.00 ×"], "predict-video"),
        ({"psmt_gain": 0.4}, ["“PSMT, learned gain”", "0.40 ×"], "predict {source} --extrapolation gain"),
        ({"copy": 0.1, "psmt": 0.3, "psmt_gain": 0.2}, ["None of", "2.00 ×"], "predict-video"),
        ({"psmt": 0.5}, ["“PSMT”", "0.50 ×"], "--starts 40"),
    ],
)
def test_the_answer_names_the_best_of_all_methods(make_prediction, errors, words, command):
    result = make_prediction(**errors)
    answer = prediction_answer(result, {"methods.png": b"", "pipeline.png": b""})
    assert all(word in answer.text for word in words) and command in answer.command
    best = all_methods_table(result).rows[0]
    assert best[0].text == METHODS[min(errors, key=errors.get)]


def test_what_is_best_by_chance_is_not_called_better(make_prediction):
    answer = prediction_answer(make_prediction(ridge=np.tile([0.1, 1.8], 4)), {"methods.png": b"", "pipeline.png": b""})
    assert "“ridge regression”" in answer.text and "not clearly better" in answer.text
