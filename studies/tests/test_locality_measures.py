"""Measures of locality on constructed P."""

import numpy as np
import pytest
from studies.locality.made_up import ATOMS_PER_PLACE, KINDS, PLACES, make_up
from studies.locality.measures import atoms_used, frames_used, group_share, rotated, shares

from psmt.embedding import embed_window
from psmt.embedding.moments import WindowMoments
from psmt.recovery import Recovery

GROUPS = np.repeat([0, 1, 2], 4)


def test_a_row_of_one_atom_uses_one_and_an_even_row_all():
    one, even = np.eye(12)[:3], np.ones((3, 12))
    assert atoms_used(one, np.ones(12)) == pytest.approx(1.0)
    assert atoms_used(even, np.ones(12)) == pytest.approx(12.0)
    assert group_share(one, np.ones(12), GROUPS) == pytest.approx(1.0)
    assert group_share(even, np.ones(12), GROUPS) == pytest.approx(1 / 3)


def test_a_row_in_one_group_is_local_by_group_and_not_by_atom():
    inside = np.where(GROUPS == 1, 1.0, 0.0)[None]
    assert group_share(inside, np.ones(12), GROUPS) == pytest.approx(1.0)
    assert atoms_used(inside, np.ones(12)) == pytest.approx(4.0)
    mixed = np.where(GROUPS == 1, np.sqrt(3.0), np.where(GROUPS == 2, 1.0, 0.0))[None]
    assert group_share(mixed, np.ones(12), GROUPS) == pytest.approx(0.75)


def test_weights_count_by_what_their_atoms_move():
    """An atom that hardly moves needs a huge weight to count, and one that does not move never counts."""
    P = np.array([[1.0, 1000.0, 7.0]])
    assert shares(P, np.array([1.0, 0.001, 0.0])) == pytest.approx(np.array([[0.5, 0.5, 0.0]]))


def test_frames_used_counts_when_a_row_moves():
    codes = np.zeros((100, 2))
    codes[:50, 0] = np.tile([1.0, -1.0], 25)  # moves in half of the frames
    codes[::2, 1] = 1.0  # always on its way between two values
    assert frames_used(np.array([[1.0, 0.0]]), codes) == pytest.approx(0.5)
    assert frames_used(np.array([[0.0, 1.0]]), codes) == pytest.approx(1.0)


def test_the_rotation_finds_local_rows():
    local = np.kron(np.eye(3), np.ones((1, 4)))
    hidden = (np.eye(3) - 2 / 3) @ local  # a reflection: each row is in all groups
    assert group_share(hidden, np.ones(12), GROUPS) == pytest.approx(4 / 9)
    found = rotated(hidden, np.ones(12))
    assert group_share(found, np.ones(12), GROUPS) == pytest.approx(1.0)
    assert np.allclose(found.T @ found, hidden.T @ hidden)


def test_the_rotation_does_not_change_predictions():
    codes = np.abs(np.random.default_rng(1).standard_normal((80, 20)).cumsum(axis=0))
    P = embed_window(WindowMoments.of(codes), 6).matrix
    local = rotated(P, codes.std(axis=0))
    target = 2 * codes[-1] - codes[-2]
    assert np.allclose(Recovery(P, 0.05)(P @ target), Recovery(local, 0.05)(local @ target), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_made_up_places_are_apart_and_move_when_they_should(kind):
    made = make_up(kind, 400, seed=3)
    again = make_up(kind, 400, seed=3)
    assert made.values.tobytes() == again.values.tobytes()
    assert not np.allclose(made.values, make_up(kind, 400, seed=4).values)
    sensors = np.abs(made.dictionary).reshape(PLACES * ATOMS_PER_PLACE, PLACES, -1).sum(axis=2)
    assert (sensors.argmax(axis=1) == made.groups).all()
    assert np.count_nonzero(sensors) == len(made.groups)  # no atom reaches into another place
    heights = made.values.reshape(400, PLACES, -1).max(axis=2)
    active = (heights > 0.5).sum(axis=1)
    if kind == "places":
        assert (active == PLACES).all()
    else:
        assert np.mean(active == 1) > 0.7
        assert ((heights > 0.5).mean(axis=0) > 0).sum() >= 3
