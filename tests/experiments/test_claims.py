"""Verdicts follow from the numbers by the stated rules, and everything for and against is named."""

from dataclasses import replace

import numpy as np
import pytest

from psmt.experiments.prediction.report import prediction_claims
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
        (((0.9, 0.7, 0.4), (0.5, 0.4, 0.3)), "holds", "holds"),
        (((0.4, 0.4, 0.4), (0.5, 0.3, 0.3)), "does not hold", INCONCLUSIVE),
        (((0.4, 0.6, 0.397), (0.3, 0.3, 0.1)), "holds", INCONCLUSIVE),  # a tie: closer than 1%
        (((0.4, 0.6, 0.41), (0.3, 0.3, 0.1)), "holds", "does not hold"),
        (((0.4, 0.3, 0.2),), INCONCLUSIVE, "holds"),
        (((0.4,), (0.3,)), "holds", INCONCLUSIVE),
    ],
)
def test_table_1_decides(make_sweep, rows, atoms, frames):
    errors = grid(*rows)
    result = make_sweep(errors, n_atoms=tuple(dict.fromkeys(size for size, _ in errors)))
    assert (more_atoms(result).verdict, more_frames(result).verdict) == (atoms, frames)


def test_what_speaks_against_a_claim_that_holds_is_named(make_sweep):
    # The paper's own row of 2048 atoms: lower at the end, not at every step.
    claim = more_frames(make_sweep({(8, 16): 0.195, (8, 20): 0.309, (8, 24): 0.190}, n_atoms=(8,)))
    assert claim.verdict == "holds"
    assert claim.text == "More frames help: a longer window reconstructs better (holds at λ = 0.1)"
    assert claim.size == "0.97 × the error, λ = 0.1"
    (line,) = claim.support
    assert "MSE 0.195 (H = 16) → 0.309 (H = 20) → 0.190 (H = 24)" in line and "0.97 × the error (0.97 to 0.97)" in line
    assert "not lower at every step" in line


def test_the_price_whose_errors_are_nearest_to_the_papers_decides_and_all_are_told(make_sweep):
    falling, rising = {(8, 16): 0.9, (8, 24): 0.3}, {(8, 16): 0.02, (8, 24): 0.04}
    mixed = more_frames(make_sweep(rising, n_atoms=(8,), others={3.0: falling, 30.0: rising}))
    assert mixed.verdict == "holds"
    assert mixed.text.endswith("(holds at λ = 3; does not hold at λ = 0.1 and 30)")
    assert {lam: (own["verdict"], own["decides"]) for lam, own in mixed.figures.items()} == {
        "0.1": ("does not hold", False),
        "3": ("holds", True),
        "30": ("does not hold", False),
    }
    assert mixed.figures["3"]["λ = 3, M = 8"]["estimate"]["mean"] == pytest.approx(np.log(1 / 3))
    assert any("λ = 3 decides: its errors are of the size of the paper's, 0.19 to 0.93" in line for line in mixed.notes)
    assert sum(line.startswith("does not hold at λ") for line in mixed.notes) == 2
    assert more_frames(make_sweep(rising, n_atoms=(8,), others={3.0: rising})).verdict == "does not hold"


def test_where_nothing_comes_back_nothing_is_compared(make_sweep):
    # At λ = 30 every picture is empty, so that its error, 1, is the nearest to the paper's of the two.
    empty, falling = {(8, 16): 0.98, (8, 24): 0.99}, {(8, 16): 0.02, (8, 24): 0.01}
    result = replace(make_sweep(falling, n_atoms=(8,), others={30.0: empty}), empty_error=1.0)
    claim = more_frames(result)
    assert (claim.verdict, claim.figures["30"]["verdict"]) == ("holds", INCONCLUSIVE)
    assert any("nothing is reconstructed" in line for line in claim.notes)
    nothing = more_frames(replace(make_sweep(empty, n_atoms=(8,)), empty_error=1.0))
    assert (nothing.verdict, nothing.size) == (INCONCLUSIVE, "")


def test_the_verdict_is_on_the_numbers_of_table_1(make_sweep):
    # Frames with next to no error lose a factor of three, all others win a tenth: the trimmed mean falls.
    short = np.where(np.arange(24) % 3 == 0, 1e-4, 0.5)
    longer = np.where(np.arange(24) % 3 == 0, 3e-4, 0.45)
    result = make_sweep({(8, 20): np.resize(short, 20), (8, 24): longer}, n_atoms=(8,))
    claim = more_frames(result)
    assert claim.verdict == "holds"
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
    assert few.verdict == INCONCLUSIVE
    estimate = few.figures["0.1"]["λ = 0.1, M = 8"]["estimate"]
    assert estimate["low"] < estimate["mean"] < np.log(0.95) and estimate["high"] > np.log(0.99)
    all_over = more_frames(make_sweep({(8, 16): 1.0, (8, 24): np.full_like(errors, 0.8)}, n_atoms=(8,), n_frames=300))
    assert all_over.verdict == "holds"


def test_untrimmed_means_that_disagree_are_named(make_sweep):
    wild = np.full(32, 0.1)
    wild[:2] = 50.0  # within the trimmed quarter
    result = make_sweep({(8, 24): 0.2, (16, 32): wild, (8, 16): 0.2}, n_atoms=(8, 16))
    claim = more_atoms(result)
    assert claim.verdict == "holds"
    assert "the untrimmed mean goes from 0.200 to 3.22" in claim.support[0]


def test_a_film_too_short_for_the_sweep_gives_the_reason():
    claim = more_atoms(None, "the film has 30 frames")
    assert (claim.verdict, claim.notes) == (INCONCLUSIVE, ("the film has 30 frames",))


# Prediction

GOOD = {"psmt": 0.1, "psmt_gain": 0.1, "baseline2": 0.2, "baseline1": 0.3}


def outcome_of(result, key="dynamic_beats_static"):
    return {claim.key: claim.verdict for claim in prediction_claims(result)}[key]


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3}, "holds"),
        ({"psmt": 0.1, "baseline2": 0.3, "baseline1": 0.2}, "holds"),
        ({"psmt": 0.2, "baseline2": 0.1, "baseline1": 0.3}, "does not hold"),
        ({"psmt": 0.2, "baseline2": 0.2, "baseline1": 0.3}, INCONCLUSIVE),
        ({"psmt": 0.199, "baseline2": 0.2, "baseline1": 0.3}, INCONCLUSIVE),  # within the margin
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3, "mean_code": 0.05}, "does not hold"),
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3, "mean_code": 0.1}, INCONCLUSIVE),
    ],
)
def test_dynamic_against_static_and_the_mean(make_prediction, errors, outcome):
    assert outcome_of(make_prediction(**errors)) == outcome


def test_effects_and_their_size_are_named(make_prediction):
    claim = prediction_claims(make_prediction(**GOOD))[0]
    line = next(line for line in claim.support if "Baseline 2" in line)
    assert "0.50 × the error (0.50 to 0.50), −0.69 in log MSE, lower at 8 of 8 starts" in line
    assert "1.0000 (1.0000 to 1.0000) on its frames shuffled" in line and "on noise of its spectrum" in line
    assert claim.size == "0.50 × the error of Baseline 2"
    figures = claim.figures["PSMT against Baseline 2, vs code"]
    assert (figures["n"], figures["as_measured"], figures["verdict"]) == (8, "holds", "holds")
    assert figures["estimate"]["mean"] == pytest.approx(np.log(0.5))
    assert claim.figures["phases"]["calm"]["baseline1"] == pytest.approx(np.log(0.3))
    assert "mean code" in next(note for note in claim.notes if note.startswith("phase “calm”"))


@pytest.mark.parametrize(
    ("null", "outcome"),
    [
        ({"psmt": 0.95}, "holds"),  # a little is won there too
        ({"psmt": 0.5}, INCONCLUSIVE),  # as much as on the film
        ({"psmt": 0.2}, "does not hold"),  # more
    ],
)
def test_what_is_won_without_order_in_time_does_not_count(make_prediction, null, outcome):
    claim = prediction_claims(make_prediction(null, **GOOD))[0]
    assert claim.verdict == outcome
    if outcome != "holds":
        assert any("null models" in line for line in (*claim.notes, *claim.against))


def test_starts_that_disagree_cannot_be_told(make_prediction):
    errors = np.tile([0.1, 0.4], 4)
    assert outcome_of(make_prediction(psmt=errors, baseline2=0.2, baseline1=0.5)) == INCONCLUSIVE


def test_a_few_starts_tell_nothing_and_that_is_the_reason(make_prediction):
    claim = prediction_claims(make_prediction(n_starts=2, **GOOD))[0]
    assert claim.verdict == INCONCLUSIVE
    assert "fewer than 6 starts" in claim.notes[0]


def test_without_nulls_nothing_is_beyond_them(make_prediction):
    assert outcome_of(make_prediction(n_null=2, **GOOD)) == INCONCLUSIVE


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(0.1, "holds"), (0.2, INCONCLUSIVE), (0.197, INCONCLUSIVE), (0.19, "holds"), (0.3, "does not hold")],
)
def test_copying_must_be_beaten_by_more_than_a_tie(make_prediction, error, outcome):
    result = make_prediction({"copy": 2.0, "copy_code": 2.0}, copy=0.2, copy_code=0.2, psmt=error, psmt_gain=error)
    claims = prediction_claims(result)[1:]
    assert [claim.verdict for claim in claims] == [outcome] * 4
    assert not any(claim.paper for claim in claims)


def test_codes_and_frames_are_two_questions(make_prediction):
    # What the code does not show of a frame is lost, however well the code is predicted.
    result = make_prediction(copy=0.02, copy_code=0.2, psmt=0.1)
    assert outcome_of(result, "beats_copying") == "holds"
    assert outcome_of(result, "beats_copying_frames") == "does not hold"


def test_who_beats_copying_but_not_the_mean_has_not_predicted_anything(make_prediction):
    result = make_prediction(psmt=0.5, mean=0.3, mean_code=0.3)
    assert outcome_of(result, "beats_copying") == "does not hold"


def test_without_a_result_nothing_can_be_told():
    for claim in prediction_claims(None, "the film has 100 frames"):
        assert (claim.verdict, claim.notes) == (INCONCLUSIVE, ("the film has 100 frames",))
        assert claim.summary()["verdict"] == INCONCLUSIVE
