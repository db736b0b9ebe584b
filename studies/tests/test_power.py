"""The study of power: films have the effect that their names promise, and a few of them are judged."""

import numpy as np
import pytest
from studies.power.__main__ import change_of_codes, change_of_film, count_verdicts
from studies.power.films import CLUSTERS, CODES, N_ATOMS, N_FRAMES, ROTATIONS, ring

PLANTED, CONSTANT, _, SHUFFLED = CODES


def together(codes, half):
    """Which pairs of atoms correlate by 0.5 or more in a half of the film."""
    return np.corrcoef(np.array_split(codes, 2)[half].T) - np.eye(N_ATOMS) > 0.5


@pytest.mark.parametrize(("kind", "common"), [(PLANTED, 0.0), (CONSTANT, 1.0)])
def test_all_groups_are_new_after_half_time_or_none(kind, common):
    early, late = (together(CODES[kind](np.random.default_rng(0)), half) for half in (0, 1))
    assert early.sum() == late.sum() == 3 * N_ATOMS
    assert (early & late).sum() == common * early.sum()


def test_films_are_made_from_their_seed():
    for films in (CODES, CLUSTERS, ROTATIONS):
        for make in films.values():
            one, two = (make(np.random.default_rng(1)) for _ in range(2))
            np.testing.assert_array_equal(one, two)
    assert len(CODES[PLANTED](np.random.default_rng(0))) == N_FRAMES
    away = np.argmax(ring(np.random.default_rng(0), noise=0.0), axis=1)
    assert set(away[:64]) == set(range(16))


@pytest.mark.parametrize(("kind", "outcome"), [(PLANTED, 2), (CONSTANT, 0), (SHUFFLED, 0)])
def test_a_regrouping_is_found_in_codes(kind, outcome):
    assert count_verdicts(CODES[kind], change_of_codes, [[0, 0], [0, 1]])["beyond_controls"]["yes"] == outcome


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "outcome"), [(PLANTED, 1), (CONSTANT, 0)])
def test_a_regrouping_is_found_in_films(kind, outcome):
    assert count_verdicts(CLUSTERS[kind], change_of_film, [[0, 0]])["beyond_controls"]["yes"] == outcome
