"""Verdicts follow from the numbers by the stated rules, and everything for and against is named."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from psmt.experiments.prediction.claims import prediction_claims
from psmt.experiments.sweep.claims import more_atoms, more_frames
from psmt.experiments.sweep.settings import SweepSettings
from psmt.experiments.topology.claims import clusters_change, clusters_persist, linked_look_alike
from psmt.experiments.topology.likeness import Likeness
from psmt.experiments.topology.persistence import Overlap

UNTOLD = "cannot be told"


def grid(*rows: tuple[float, ...]) -> dict[tuple[int, int], float]:
    """Errors by (M, H) for M = 8, 16, .. and H = 2, 2.5 and 3 M."""
    sizes = [8 * 2**i for i in range(len(rows))]
    return {
        (size, int(ratio * size)): error
        for size, row in zip(sizes, rows, strict=True)
        for ratio, error in zip((2, 2.5, 3), row, strict=False)
    }


# The sweep


@pytest.mark.parametrize(
    ("rows", "atoms", "frames"),
    [
        (((0.9, 0.7, 0.4), (0.5, 0.4, 0.3)), "holds", "holds"),
        (((0.4, 0.4, 0.4), (0.5, 0.3, 0.3)), "does not hold", UNTOLD),
        (((0.4, 0.6, 0.397), (0.3, 0.3, 0.1)), "holds", UNTOLD),  # a tie: closer than 1%
        (((0.4, 0.6, 0.41), (0.3, 0.3, 0.1)), "holds", "does not hold"),
        (((0.4, 0.3, 0.2),), UNTOLD, "holds"),
        (((0.4,), (0.3,)), "holds", UNTOLD),
    ],
)
def test_table_1_decides(make_sweep, rows, atoms, frames):
    errors = grid(*rows)
    result = make_sweep(errors, n_atoms=tuple(dict.fromkeys(size for size, _ in errors)))
    assert (more_atoms(result).outcome, more_frames(result).outcome) == (atoms, frames)


def test_what_speaks_against_a_claim_that_holds_is_named(make_sweep):
    # The paper's own row of 2048 atoms: lower at the end, not at every step.
    claim = more_frames(make_sweep({(8, 16): 0.195, (8, 20): 0.309, (8, 24): 0.190}, n_atoms=(8,)))
    assert claim.outcome == "holds"
    assert claim.text == "More frames help: a longer window reconstructs better (holds at λ = 0.1)"
    assert claim.support == (
        "λ = 0.1, M = 8: MSE 0.195 (H = 16) → 0.309 (H = 20) → 0.19 (H = 24); frame by frame 0.97 times, 0.97 to 0.97",
    )
    assert claim.against == ("λ = 0.1, M = 8: not at every step of that chain",)


def test_every_price_is_judged_by_itself_and_the_headline_says_which_hold(make_sweep):
    falling, rising = {(8, 16): 0.9, (8, 24): 0.3}, {(8, 16): 0.02, (8, 24): 0.04}
    mixed = more_frames(make_sweep(rising, n_atoms=(8,), others={3.0: falling, 30.0: falling}))
    assert mixed.outcome == UNTOLD
    assert mixed.text.endswith("(holds at λ = 3 and 30; does not hold at λ = 0.1)")
    assert {lam: own["verdict"] for lam, own in mixed.figures.items()} == {
        "0.1": "does not hold",
        "3": "holds",
        "30": "holds",
    }
    assert mixed.figures["30"]["M = 8"]["ratio"] == pytest.approx([1 / 3] * 3)
    assert any("of the size of the paper's, 0.19 to 0.93, at λ = 3 and 30" in line for line in mixed.notes)
    assert more_frames(make_sweep(falling, n_atoms=(8,), others={3.0: falling})).outcome == "holds"
    assert more_frames(make_sweep(rising, n_atoms=(8,), others={3.0: rising})).outcome == "does not hold"


def test_what_a_few_stretches_decide_cannot_be_told(make_sweep):
    # Over all frames the longer window is better by a quarter, but all of it comes from one of twelve stretches.
    settings = SweepSettings(n_atoms=(8,))
    frames = np.zeros(300)
    frames[100:125] = -3.0
    places = settings.segments(24, 300)
    errors = np.exp([frames[start:stop] for start, stop in places])
    few = more_frames(make_sweep({(8, 16): 1.0, (8, 24): errors}, n_atoms=(8,), n_frames=300))
    assert few.outcome == UNTOLD
    times, low, high = few.figures["0.1"]["M = 8"]["ratio"]
    assert low < times < 0.8 and high > 0.99
    all_over = more_frames(make_sweep({(8, 16): 1.0, (8, 24): np.full_like(errors, 0.8)}, n_atoms=(8,), n_frames=300))
    assert all_over.outcome == "holds"


def test_untrimmed_means_that_disagree_are_named(make_sweep):
    wild = np.full(32, 0.1)
    wild[:2] = 50.0  # within the trimmed quarter, and in the mean of logarithms no more than a few of many
    result = make_sweep({(8, 24): 0.2, (16, 32): wild, (8, 16): 0.2}, n_atoms=(8, 16))
    claim = more_atoms(result)
    assert claim.outcome == "holds"
    assert claim.against == ("λ = 0.1, H = 2 M: untrimmed, the mean goes from 0.2 to 3.22",)


def test_a_film_too_short_for_the_sweep_gives_the_reason():
    claim = more_atoms(None, "the film has 30 frames")
    assert (claim.outcome, claim.notes) == (UNTOLD, ("the film has 30 frames",))


# The topology


NEAR = Overlap(frames_apart=96, frames_shared=63 / 64, jaccard=0.9, permuted=0.01, p_value=0.001, adjusted_rand=0.9)
FAR = Overlap(frames_apart=6200, frames_shared=0.0, jaccard=0.2, permuted=0.01, p_value=0.001, adjusted_rand=0.1)


def make_topology(distant=FAR, *, halves=None, edges=3, linked=0.4, p_value=0.001):
    """What the claims read of a result."""
    likeness = Likeness(linked, 0.1, np.zeros(9), p_value)
    return SimpleNamespace(
        persistence=SimpleNamespace(successive=NEAR, distant=distant, always_linked=2, sometimes_linked=7),
        halves=halves,
        graphs=[{"edges": np.zeros((edges, 2))}],
        component_size=np.array([[1, 4], [3, 1]]),
        chosen=(0, 1),
        likeness=likeness,
        shifted_likeness=replace(likeness, p_value=0.5),
    )


def test_clusters_that_change_and_still_persist():
    change, persist = clusters_change(make_topology()), clusters_persist(make_topology())
    assert (change.outcome, persist.outcome) == ("holds", "holds")
    assert "80% of the links differ" in change.support[0]
    assert "2 atoms have links in all windows" in change.against[0]
    assert "20% of the links are in both" in persist.support[0]
    assert "the other 80% do not last" in persist.against[0]
    assert "98% of their frames" in persist.notes[0]


def test_what_stays_the_same_does_not_change():
    assert clusters_change(make_topology(replace(FAR, jaccard=0.5))).outcome == "does not hold"


@pytest.mark.parametrize("distant", [replace(FAR, p_value=0.06), replace(FAR, jaccard=0.005, p_value=0.04)])
def test_links_that_chance_explains_do_not_persist(distant):
    claim = clusters_persist(make_topology(distant))
    assert claim.outcome == "does not hold"
    assert "by chance" in claim.against[0]


def test_windows_with_common_frames_decide_nothing_but_halves_do():
    shared = replace(FAR, frames_shared=0.4)
    claim = clusters_persist(make_topology(shared))
    assert claim.outcome == UNTOLD
    assert claim.notes[0] == "no two windows are without common frames"
    assert clusters_persist(make_topology(shared, halves=FAR)).outcome == "holds"


def test_a_graph_without_links_says_nothing():
    nothing = replace(FAR, jaccard=np.nan, p_value=np.nan)
    result = make_topology(nothing, edges=0, linked=np.nan, p_value=np.nan)
    for claim in (clusters_change(result), clusters_persist(result), linked_look_alike(result)):
        assert claim.outcome == UNTOLD
        assert "no two atoms are linked" in claim.notes


@pytest.mark.parametrize(
    ("linked", "p_value", "outcome"),
    [(0.4, 0.001, "holds"), (0.4, 0.2, "does not hold"), (0.05, 0.001, "does not hold")],
)
def test_likeness(linked, p_value, outcome):
    claim = linked_look_alike(make_topology(linked=linked, p_value=p_value))
    assert claim.outcome == outcome
    assert any("shifted" in line for line in claim.against)


# Prediction


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3}, "holds"),
        ({"psmt": 0.1, "baseline2": 0.3, "baseline1": 0.2}, "holds"),
        ({"psmt": 0.2, "baseline2": 0.1, "baseline1": 0.3}, "does not hold"),
    ],
)
def test_dynamic_against_static(make_result, with_errors, errors, outcome):
    claim = prediction_claims([with_errors(make_result(), **errors)])[0]
    assert claim.outcome == outcome
    own = f"log MSE vs code {np.log(errors['psmt']):.2f}".replace("-", "−")
    assert all(own in line for line in (*claim.support, *claim.against))
    assert claim.figures["calm"]["baseline1"] == pytest.approx(np.log(errors["baseline1"]))


@pytest.mark.parametrize(
    ("error", "outcome"), [(0.1, "holds"), (0.2, "does not hold"), (0.19999, "does not hold"), (0.3, "does not hold")]
)
def test_copying_must_be_beaten_by_more_than_rounding(make_result, with_errors, error, outcome):
    result = with_errors(make_result(), copy=0.2, copy_code=0.2, psmt=error, psmt_gain=error)
    claims = prediction_claims([result])[1:]
    assert [claim.outcome for claim in claims] == [outcome, outcome]
    assert not any(claim.paper for claim in claims)


def test_one_phase_that_denies_a_claim_is_enough_and_the_other_is_named(make_result, with_errors):
    good = with_errors(make_result(), psmt=0.1, baseline2=0.2, baseline1=0.3)
    bad = with_errors(make_result("lively"), psmt=0.3, baseline2=0.2, baseline1=0.1)
    claim = prediction_claims([good, bad])[0]
    assert claim.outcome == "does not hold"
    assert [line[:4] for line in claim.support] == ["calm", "calm"]
    assert [line[:6] for line in claim.against] == ["lively", "lively"]


def test_without_a_phase_nothing_can_be_tested():
    for claim in prediction_claims([], "the film has 100 frames"):
        assert (claim.outcome, claim.notes) == (UNTOLD, ("the film has 100 frames",))
        assert claim.summary()["verdict"] == UNTOLD
