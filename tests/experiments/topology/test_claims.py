"""Verdicts on the topology follow from the numbers by the stated rules."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from psmt.evaluation.null_models import NullTest
from psmt.experiments.topology.measures import Likeness, LinkChange, LinkPersistence
from psmt.experiments.topology.report import clusters_change, clusters_persist, linked_look_alike
from psmt.experiments.topology.settings import TopologySettings

INCONCLUSIVE = "inconclusive"

SPREAD = np.linspace(-0.02, 0.02, 19)
"""Draws of a null model, without its mean."""


def make_topology(*, same=0.8, other=0.3, lasting=0.3, shuffled=0.05, chance=0.01, links=400, **likeness):
    """What the claims read of a result."""
    dealt = NullTest(same - other, SPREAD)
    linked, in_random_order = likeness.get("linked", 0.4), likeness.get("in_random_order", 0.1)
    alike = Likeness(linked, 0.1, NullTest(linked - 0.1, SPREAD), NullTest(linked - 0.1, in_random_order + SPREAD))
    return SimpleNamespace(
        settings=TopologySettings(),
        step=TopologySettings().step,
        persistence=SimpleNamespace(always_linked=2, sometimes_linked=7, shared=np.array([0.9, 0.5])),
        design=SimpleNamespace(windows=np.zeros((2, 5000)), sets=np.zeros((4, 2400)), block=60, memory=15),
        change=None if np.isnan(same) else LinkChange(same, other, links, dealt),
        lasting=LinkPersistence(links, NullTest(lasting, shuffled + SPREAD), NullTest(lasting, np.full(99, chance))),
        component_size=np.array([[1, 4], [3, 1]]),
        chosen=(0, 1),
        likeness=alike,
        shifted_likeness=replace(alike, shuffled=NullTest(0.3, 0.3 + SPREAD)),
    )


def test_clusters_that_change_and_still_persist():
    result = make_topology()
    change, persist = clusters_change(result), clusters_persist(result)
    assert (change.verdict, persist.verdict) == ("holds", "holds")
    assert all(part in change.support[0] for part in ("50 in 100 (48 to 52)", "80%", "30%"))
    assert all(part in persist.support[0] for part in ("25 in 100 (23 to 27)", "30%", "5%"))
    assert (change.size, persist.size) == ("+50 links in 100", "+25 links in 100")
    assert "30.00 times the 1%" in persist.support[1]
    assert (change.against, persist.against) == ((), ())
    assert any("98% of their frames" in line for line in persist.notes)


@pytest.mark.parametrize(
    ("same", "other", "outcome"),
    [
        (0.80, 0.60, "holds"),
        (0.80, 0.75, INCONCLUSIVE),
        (0.80, 0.79, "does not hold"),
        (0.09, 0.00, INCONCLUSIVE),  # what does not repeat at the same time cannot be seen to change
        (np.nan, np.nan, INCONCLUSIVE),
    ],
)
def test_change_is_beyond_what_chance_gives_by_five_in_a_hundred(same, other, outcome):
    assert clusters_change(make_topology(same=same, other=other)).verdict == outcome


@pytest.mark.parametrize(
    ("lasting", "shuffled", "chance", "outcome"),
    [
        (0.30, 0.05, 0.01, "holds"),
        (0.0043, 0.0, 0.0001, "does not hold"),  # many times chance, and next to nothing
        (0.30, 0.25, 0.01, INCONCLUSIVE),
        (0.30, 0.29, 0.01, "does not hold"),  # as many in random order
        (0.30, 0.05, 0.15, "does not hold"),  # twice as many as with permuted atoms
    ],
)
def test_links_persist_beyond_shuffled_frames_and_permuted_atoms(lasting, shuffled, chance, outcome):
    claim = clusters_persist(make_topology(lasting=lasting, shuffled=shuffled, chance=chance))
    assert claim.verdict == outcome
    assert bool(claim.against) == (outcome == "does not hold")


def test_few_links_are_inconclusive():
    result = make_topology(links=39)
    for claim in (clusters_change(result), clusters_persist(result), linked_look_alike(result)):
        assert (claim.verdict, claim.support, claim.against) == (INCONCLUSIVE, (), ())
        assert any("39 links" in line for line in claim.notes)


def test_a_graph_without_links_says_nothing():
    result = make_topology(same=np.nan, lasting=np.nan, linked=np.nan)
    for claim in (clusters_change(result), clusters_persist(result), linked_look_alike(result)):
        assert claim.verdict == INCONCLUSIVE
    assert any("no two atoms" in line for line in clusters_persist(result).notes)


@pytest.mark.parametrize(
    ("linked", "in_random_order", "outcome"),
    [(0.4, 0.1, "holds"), (0.4, 0.25, INCONCLUSIVE), (0.4, 0.29, "does not hold"), (0.11, -0.5, "does not hold")],
)
def test_likeness(linked, in_random_order, outcome):
    claim = linked_look_alike(make_topology(linked=linked, in_random_order=in_random_order))
    assert claim.verdict == outcome
    assert any("shifted" in line for line in claim.against)
