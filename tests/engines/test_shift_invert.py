"""Shift-invert operators against dense inverses, on every engine: low-rank changes, new shifts at once and later."""

import copy
import os
import pickle

import numpy as np
import pytest

from psmt.engines.contract import LowRankChange
from psmt.engines.numba.shift_invert import FEW, LazyShiftInvert, few_rows_times

N, SHIFTS = 40, np.array([0.1 + 0.2j, 0.7 + 0.1j])


class Pencil:
    """V and S that change by outer products."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.covariance, self.curvature = (self.gram() for _ in range(2))

    def gram(self):
        root = self.rng.standard_normal((2 * N, N))
        return root.T @ root / N

    def shifted(self, shifts):
        return self.curvature - shifts[:, None, None] * self.covariance

    def change(self):
        """A change, which the matrices have had when it is given."""
        vectors, (covariance, curvature) = self.rng.standard_normal((4, N)), self.rng.uniform(0.0, 0.1, (2, 4))
        self.covariance = self.covariance + (vectors.T * covariance) @ vectors
        self.curvature = self.curvature + (vectors.T * curvature) @ vectors
        return LowRankChange(vectors, covariance, curvature)


def own(engine, change):
    return LowRankChange(*map(engine.array, change))


def operators(engine, pencil):
    shifts = engine.array(SHIFTS.real) + 1j * engine.array(SHIFTS.imag)
    shifted = pencil.shifted(SHIFTS)
    return engine.shift_invert(engine.array(shifted.real) + 1j * engine.array(shifted.imag), shifts)


def test_operators_follow_low_rank_changes(engine):
    pencil = Pencil()
    inverses = operators(engine, pencil)
    for _ in range(12):
        before = np.linalg.inv(pencil.shifted(SHIFTS))
        change = pencil.change()
        images = engine.numpy(inverses.update(own(engine, change)))
        assert np.allclose(images, change.vectors @ before, atol=1e-10)
    assert np.allclose(engine.numpy(inverses.dense()), np.linalg.inv(pencil.shifted(SHIFTS)), atol=1e-10)


@pytest.mark.parametrize("later", [False, True])
def test_an_operator_is_made_afresh_at_a_new_shift(engine, later):
    pencil, fresh = Pencil(), np.array([0.3 + 0.1j, 0.7 + 0.1j])
    inverses = operators(engine, pencil)
    shifted = pencil.shifted(fresh[:1])
    new = [engine.array(part.real) + 1j * engine.array(part.imag) for part in (fresh, shifted)]
    inverses.refactorise(engine.array([1.0, 0.0]) > 0, *new, later=later)
    for _ in range(6):
        inverses.update(own(engine, pencil.change()))
        # Whichever serves, it is that of its shift.
        expected = np.linalg.inv(pencil.shifted(engine.numpy(inverses.shifts)))
        assert np.allclose(engine.numpy(inverses.dense()), expected, atol=1e-9)
    assert np.allclose(engine.numpy(inverses.shifts), fresh)


def prepared():
    """Operators of which one is on its way, and their pencil."""
    pencil = Pencil()
    inverses = LazyShiftInvert(pencil.shifted(SHIFTS), SHIFTS)
    inverses.refactorise(
        np.array([True, False]), np.array([0.3 + 0.1j, 0.0]), pencil.shifted(np.array([0.3 + 0.1j])), later=True
    )
    inverses.update(pencil.change())
    return inverses, pencil


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_an_operator_on_its_way_is_copied_when_it_is_there(copied):
    inverses, pencil = prepared()
    other = copied(inverses)
    change = pencil.change()
    for one in (inverses, other):
        one.update(change)
        assert np.isclose(one.shifts[0], 0.3 + 0.1j)
        assert np.allclose(one.dense(), np.linalg.inv(pencil.shifted(one.shifts)), atol=1e-9)


def test_a_fork_does_not_wait_for_threads_that_it_has_not(monkeypatch):
    inverses, pencil = prepared()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for _ in range(6):
        inverses.update(pencil.change())
    assert np.allclose(inverses.shifts, SHIFTS)
    assert np.allclose(inverses.dense(), np.linalg.inv(pencil.shifted(SHIFTS)), atol=1e-9)


def test_an_operator_that_is_asked_for_at_once_does_not_wait_for_the_one_on_its_way():
    inverses, pencil = prepared()
    inverses.refactorise(np.array([True, False]), np.array([0.5j, 0.0]), pencil.shifted(np.array([0.5j])))
    for _ in range(6):
        inverses.update(pencil.change())
    assert np.isclose(inverses.shifts[0], 0.5j)
    assert np.allclose(inverses.dense(), np.linalg.inv(pencil.shifted(inverses.shifts)), atol=1e-9)


def test_a_matrix_without_an_inverse_leaves_the_operator_as_it_is():
    pencil = Pencil()
    inverses = LazyShiftInvert(pencil.shifted(SHIFTS), SHIFTS)
    inverses.refactorise(np.array([True, False]), np.array([0.3, 0.0]), np.zeros((1, N, N), complex), later=True)
    for _ in range(6):
        inverses.update(pencil.change())
    assert np.allclose(inverses.dense(), np.linalg.inv(pencil.shifted(SHIFTS)), atol=1e-9)


@pytest.mark.parametrize("k", range(FEW + 1))
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (17, 9), (64, 31)])
def test_few_rows_times_a_matrix_are_those_of_numpy(k, shape):
    rng = np.random.default_rng(0)
    vectors, matrix = rng.standard_normal((shape[0], k)).T, rng.standard_normal(shape)
    np.testing.assert_allclose(few_rows_times(vectors, matrix), vectors @ matrix, rtol=1e-12, atol=1e-12)


def test_few_rows_that_are_not_finite_stay_so():
    images = few_rows_times(np.array([[1.0, np.nan, 0.0], [1.0, 2.0, np.inf]]), np.ones((3, 2)))
    assert np.isnan(images[0]).all()
    assert np.isinf(images[1]).all()
