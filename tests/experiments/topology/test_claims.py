"""Verdicts on the topology follow from the numbers by the stated rules."""

from types import SimpleNamespace

import numpy as np
import pytest

from psmt.evaluation.null_models import NullTest
from psmt.experiments.topology.measures import Likeness, LinkPersistence, SimilarityChange
from psmt.experiments.topology.report import clusters_change, clusters_persist, linked_look_alike
from psmt.experiments.topology.settings import TopologySettings

INCONCLUSIVE = "inconclusive"

SPREAD = np.linspace(-0.02, 0.02, 19)
"""Draws of a null model, without its mean."""


def make_topology(*, repeated=0.8, lost=0.5, lasting=0.3, shuffled=0.05, chance=0.01, links=400, **likeness):
    """What the claims read of a result."""
    change = SimilarityChange(600, (1 - lost) * repeated, repeated, NullTest(lost, SPREAD))
    linked, in_random_order = likeness.get("linked", 0.4), likeness.get("in_random_order", 0.1)
    alike = Likeness(linked, 0.1, NullTest(linked - 0.1, SPREAD), NullTest(linked - 0.1, in_random_order + SPREAD))
    return SimpleNamespace(
        settings=TopologySettings(),
        step=TopologySettings().step,
        design=SimpleNamespace(
            windows=np.zeros((2, 5000)), blocks=np.zeros((24, 400)), splits=np.array([12]), memory=15
        ),
        change=None if np.isnan(repeated) else change,
        lasting=LinkPersistence(links, NullTest(lasting, shuffled + SPREAD), NullTest(lasting, np.full(99, chance))),
        likeness=alike,
    )


def test_clusters_that_change_and_still_persist():
    result = make_topology()
    change, persist = clusters_change(result), clusters_persist(result)
    assert (change.beyond_controls.verdict, persist.beyond_controls.verdict) == ("yes", "yes")
    assert all(part in change.support[0] for part in ("in 100", "on blocks of frames in random order", "0.80", "0.40"))
    assert all(part in persist.support[0] for part in ("30 in 100", "5 (3 to 7) on frames in random order"))
    assert change.size.startswith("50 in 100")
    assert persist.size == "+30 links in 100"
    assert "30.00 times the 1%" in persist.support[1]
    assert (change.against, persist.against) == ((), ())


@pytest.mark.parametrize(
    ("repeated", "lost", "outcome"),
    [
        (0.80, 0.20, "yes"),
        (0.80, 0.10, INCONCLUSIVE),
        (0.80, 0.06, "no"),
        (0.09, np.nan, INCONCLUSIVE),  # what does not repeat cannot be seen to change
        (np.nan, np.nan, INCONCLUSIVE),
    ],
)
def test_change_is_beyond_what_chance_gives_by_ten_in_a_hundred(repeated, lost, outcome):
    assert clusters_change(make_topology(repeated=repeated, lost=lost)).beyond_controls.verdict == outcome


@pytest.mark.parametrize(
    ("lasting", "shuffled", "chance", "outcome"),
    [
        (0.30, 0.05, 0.01, "yes"),
        (0.0043, 0.0, 0.0001, "no"),  # many times chance, and next to nothing
        (0.30, 0.25, 0.01, INCONCLUSIVE),
        (0.30, 0.29, 0.01, "no"),  # as many in random order
        (0.30, 0.05, 0.15, "no"),  # twice as many as with permuted atoms
    ],
)
def test_links_persist_beyond_shuffled_frames_and_permuted_atoms(lasting, shuffled, chance, outcome):
    claim = clusters_persist(make_topology(lasting=lasting, shuffled=shuffled, chance=chance))
    assert claim.beyond_controls.verdict == outcome


def test_few_links_are_inconclusive():
    result = make_topology(links=39)
    for claim in (clusters_persist(result), linked_look_alike(result)):
        assert (claim.beyond_controls.verdict, claim.support, claim.against) == (INCONCLUSIVE, (), ())
        assert any("39 links" in line for line in claim.notes)


def test_a_graph_without_links_says_nothing():
    result = make_topology(repeated=np.nan, lasting=np.nan, linked=np.nan)
    for claim in (clusters_change(result), clusters_persist(result), linked_look_alike(result)):
        assert claim.beyond_controls.verdict == INCONCLUSIVE
    assert any("no two atoms" in line for line in clusters_persist(result).notes)


@pytest.mark.parametrize(
    ("linked", "in_random_order", "outcome"),
    [(0.4, 0.1, "yes"), (0.4, 0.25, INCONCLUSIVE), (0.4, 0.29, "no"), (0.11, -0.5, "no")],
)
def test_likeness(linked, in_random_order, outcome):
    claim = linked_look_alike(make_topology(linked=linked, in_random_order=in_random_order))
    assert claim.beyond_controls.verdict == outcome
