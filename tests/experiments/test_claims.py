"""Verdicts follow from the numbers by the stated rules, and everything for and against is named."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from psmt.experiments.prediction.claims import prediction_claims
from psmt.experiments.sweep.claims import more_atoms, more_frames
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
        (((0.4, 0.4, 0.4), (0.5, 0.3, 0.3)), "does not hold", "does not hold"),
        (((0.4, 0.6, 0.39996), (0.3, 0.3, 0.1)), "holds", "does not hold"),
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
    assert claim.support == ("M = 8: MSE 0.195 (H = 16) → 0.309 (H = 20) → 0.19 (H = 24)",)
    assert claim.against == ("M = 8: not at every step of that chain",)


def test_untrimmed_means_that_disagree_are_named(make_sweep):
    wild = np.full(32, 0.1)
    wild[:4] = 50.0  # within the trimmed quarter
    result = make_sweep({(8, 24): 0.2, (16, 32): wild, (8, 16): 0.2}, n_atoms=(8, 16))
    claim = more_atoms(result)
    assert claim.outcome == "holds"
    assert claim.against == ("H = 2 M: untrimmed, the mean goes from 0.2 to 6.34",)


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

GOOD = {"psmt": 0.1, "psmt_gain": 0.1, "baseline2": 0.2, "baseline1": 0.3}


def outcome_of(result, key="dynamic_beats_static"):
    return {claim.key: claim.outcome for claim in prediction_claims(result)}[key]


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3}, "holds"),
        ({"psmt": 0.1, "baseline2": 0.3, "baseline1": 0.2}, "holds"),
        ({"psmt": 0.2, "baseline2": 0.1, "baseline1": 0.3}, "does not hold"),
        ({"psmt": 0.2, "baseline2": 0.2, "baseline1": 0.3}, UNTOLD),
        ({"psmt": 0.199, "baseline2": 0.2, "baseline1": 0.3}, UNTOLD),  # within the margin
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3, "mean_code": 0.05}, "does not hold"),
        ({"psmt": 0.1, "baseline2": 0.2, "baseline1": 0.3, "mean_code": 0.1}, UNTOLD),
    ],
)
def test_dynamic_against_static_and_the_mean(make_prediction, errors, outcome):
    assert outcome_of(make_prediction(**errors)) == outcome


def test_effects_and_their_size_are_named(make_prediction):
    claim = prediction_claims(make_prediction(**GOOD))[0]
    line = next(line for line in claim.support if "Baseline 2" in line)
    assert "−0.69 in log MSE (−0.69 to −0.69), 0.50 times the error, lower at 8 of 8 starts" in line
    assert "on its frames shuffled 0.00" in line and "on noise of its spectrum 0.00" in line
    figures = claim.figures["comparisons"]["PSMT against Baseline 2, vs code"]
    assert (figures["starts"], figures["wins"], figures["verdict"]) == (8, 8, "holds")
    assert figures["effect"]["mean"] == pytest.approx(np.log(0.5))
    assert figures["times_its_error"] == pytest.approx(0.5)
    assert claim.figures["calm"]["baseline1"] == pytest.approx(np.log(0.3))
    assert "mean code" in next(note for note in claim.notes if note.startswith("phase “calm”"))


@pytest.mark.parametrize(
    ("null", "outcome"),
    [
        ({"psmt": 0.95}, "holds"),  # a little is won there too
        ({"psmt": 0.5}, UNTOLD),  # as much as on the film
        ({"psmt": 0.2}, "does not hold"),  # more
    ],
)
def test_what_is_won_without_order_in_time_does_not_count(make_prediction, null, outcome):
    claim = prediction_claims(make_prediction(null, **GOOD))[0]
    assert claim.outcome == outcome
    if outcome != "holds":
        assert any("not beyond what it wins there" in line for line in (*claim.notes, *claim.against))


def test_starts_that_disagree_cannot_be_told(make_prediction):
    errors = np.tile([0.1, 0.4], 4)
    assert outcome_of(make_prediction(psmt=errors, baseline2=0.2, baseline1=0.5)) == UNTOLD


def test_a_few_starts_tell_nothing_and_that_is_the_reason(make_prediction):
    claim = prediction_claims(make_prediction(n_starts=2, **GOOD))[0]
    assert claim.outcome == UNTOLD
    assert "fewer than 6 starts to tell" in claim.notes[0]


def test_without_nulls_nothing_is_beyond_them(make_prediction):
    assert outcome_of(make_prediction(n_null=2, **GOOD)) == UNTOLD


@pytest.mark.parametrize(
    ("error", "outcome"), [(0.1, "holds"), (0.2, UNTOLD), (0.197, UNTOLD), (0.19, "holds"), (0.3, "does not hold")]
)
def test_copying_must_be_beaten_by_more_than_a_tie(make_prediction, error, outcome):
    result = make_prediction({"copy": 2.0, "copy_code": 2.0}, copy=0.2, copy_code=0.2, psmt=error, psmt_gain=error)
    claims = prediction_claims(result)[1:]
    assert [claim.outcome for claim in claims] == [outcome, outcome]
    assert not any(claim.paper for claim in claims)


def test_who_beats_copying_but_not_the_mean_has_not_foretold_anything(make_prediction):
    result = make_prediction(psmt=0.5, mean=0.3, mean_code=0.3)
    assert outcome_of(result, "beats_copying") == "does not hold"


def test_without_a_result_nothing_can_be_told():
    for claim in prediction_claims(None, "the film has 100 frames"):
        assert (claim.outcome, claim.notes) == (UNTOLD, ("the film has 100 frames",))
        assert claim.summary()["verdict"] == UNTOLD
