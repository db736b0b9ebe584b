"""Every operation of every engine, against an oracle that knows nothing of engines."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import LassoLars

from conftest import wave
from psmt import SparseCoder, TemporalEmbedding
from psmt.coding.dictionary import DictionaryStatistics
from psmt.embedding.policy import RANK_TOL
from psmt.extrapolation import make_extrapolation
from psmt.lasso import solve_many
from psmt.recovery import Recovery

WAYS = {"centred": True, "ends": False, "rank_tol": RANK_TOL}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def atoms(rng):
    """Atoms (30, 12) of several norms, one of them zero."""
    given = rng.standard_normal((30, 12))
    given[4] = 0.0
    return given


def sparse_codes(rng, n, n_atoms, share=0.2):
    """Codes (n, n_atoms) of a scene that moves: smooth, non-negative, mostly zero."""
    smooth = np.cumsum(rng.standard_normal((n, n_atoms)), axis=0)
    smooth -= np.quantile(smooth, 1 - share, axis=0)
    return np.maximum(smooth, 0.0) + 0.01 * np.abs(rng.standard_normal((n, n_atoms)))


class TestCoding:
    def test_codes_are_those_of_scikit_learn(self, engine, rng, atoms):
        samples = rng.standard_normal((5, 12))
        codes = engine.numpy(engine.atoms(atoms).code(engine.array(samples), 0.3, tol=1e-12))
        lasso = LassoLars(alpha=0.3 / 12, positive=True, fit_intercept=False)
        for sample, code in zip(samples, codes, strict=True):
            np.testing.assert_allclose(code, lasso.fit(atoms.T, sample).coef_, atol=1e-7)

    def test_codes_meet_the_optimality_conditions(self, engine, rng, atoms):
        samples = rng.standard_normal((200, 12))
        codes = engine.numpy(engine.atoms(atoms).code(engine.array(samples), 0.2, tol=1e-12))
        gradient = (samples - codes @ atoms) @ atoms.T
        assert (codes >= 0).all()
        assert gradient.max() <= 0.2 + 1e-6
        np.testing.assert_allclose(gradient[codes > 0], 0.2, atol=1e-6)

    def test_following_finds_the_same_code_from_any_start(self, engine, rng, atoms):
        ready = engine.atoms(atoms)
        samples = engine.array(rng.standard_normal((4, 12)))
        codes = ready.code(samples, 0.2, tol=1e-12)
        for last in (codes[0], 0.0 * codes[0], codes[1] + 1.0):
            found = ready.code_next(samples[1], 0.2, tol=1e-12, last=last)
            np.testing.assert_allclose(engine.numpy(found), engine.numpy(codes[1]), atol=1e-9)

    def test_equal_atoms_and_empty_samples(self, engine):
        ready = engine.atoms(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        codes = engine.numpy(ready.code(engine.array([[2.0, 0.0], [0.0, 0.0]]), 0.5, tol=1e-12))
        np.testing.assert_allclose(codes[0, :2].sum(), 1.5)
        np.testing.assert_array_equal(codes[1], 0.0)

    def test_decoding(self, engine, rng, atoms):
        codes = rng.random((3, 30))
        np.testing.assert_allclose(engine.numpy(engine.atoms(atoms).decode(engine.array(codes))), codes @ atoms)


class TestLearning:
    def test_statistics_improve_atoms_as_the_literal_sweep_does(self, engine, rng):
        unit = scipy.linalg.orth(rng.standard_normal((50, 50)))[:, :9] + 0.1
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        samples = rng.standard_normal((100, 9))
        codes = solve_many(unit, samples, 0.2).coef
        statistics = engine.statistics(50, 9)
        statistics.update(engine.array(codes), engine.array(samples))
        improved = engine.array(unit.copy())
        statistics.improve(improved)
        expected = unit.copy()
        for j in np.flatnonzero(codes.any(axis=0)):
            wish = codes[:, j] @ (samples - codes @ expected + np.outer(codes[:, j], expected[j]))
            expected[j] = wish / np.linalg.norm(wish)
        np.testing.assert_allclose(engine.numpy(improved), expected, atol=1e-12)

    def test_dead_atoms_become_the_worst_samples(self, engine, rng):
        statistics = engine.statistics(4, 3)
        atoms = engine.array(np.eye(4, 3))
        samples, residuals = rng.standard_normal((5, 3)), np.diag([0.0, 1, 9, 2, 3])[:, :3]
        for _ in range(5):
            statistics.update(engine.array(np.tile([1.0, 1.0, 1.0, 0.0], (5, 1))), engine.array(samples))
        assert statistics.replace_dead(atoms, engine.array(samples), engine.array(residuals)) == 1
        np.testing.assert_allclose(engine.numpy(atoms)[3], samples[2] / np.linalg.norm(samples[2]))

    def test_all_engines_learn_one_dictionary(self, engine):
        film = wave(150)
        given = {"n_atoms": 16, "alpha": 0.1, "batch_size": 40, "max_epochs": 2, "random_state": 0}
        learned = SparseCoder(**given, device=engine.device).fit(film)
        reference = SparseCoder(**given).fit(film)
        np.testing.assert_allclose(learned.dictionary_, reference.dictionary_, atol=1e-8)
        np.testing.assert_allclose(learned.objective_, reference.objective_, rtol=1e-8)
        np.testing.assert_allclose(learned.transform(film), reference.transform(film), atol=1e-6)

    def test_fading_is_that_of_the_reference(self, engine, rng):
        own, reference = engine.statistics(6, 4), DictionaryStatistics(6, 4)
        for _ in range(4):
            codes, samples = rng.random((20, 6)), rng.standard_normal((20, 4))
            own.update(engine.array(codes), engine.array(samples))
            reference.update(codes, samples)
        np.testing.assert_allclose(engine.numpy(own.code_code), reference.code_code)
        np.testing.assert_allclose(engine.numpy(own.code_sample), reference.code_sample)


class TestMoments:
    @pytest.mark.parametrize("centred", [True, False])
    @pytest.mark.parametrize("ends", [True, False])
    def test_a_window_that_slid_is_a_window_made_at_once(self, engine, rng, centred, ends):
        codes = sparse_codes(rng, 90, 7)
        moments = engine.moments(engine.array(codes[:40]))
        for code in engine.array(codes[40:]):
            moments.slide(code)
        window = codes[-40:]
        expected = np.cov(window.T) if centred else window.T @ window / 40
        padding = np.zeros((1, 7))
        around = np.vstack([padding, window, padding]) if ends else window
        bends = around[1:-1] - 0.5 * (around[:-2] + around[2:])
        np.testing.assert_allclose(engine.numpy(moments.covariance(centred=centred)), expected, atol=1e-12)
        np.testing.assert_allclose(engine.numpy(moments.second_differences(ends=ends)), bends.T @ bends, atol=1e-11)
        np.testing.assert_allclose(float(moments.peak_activity), window.sum(axis=1).max())
        np.testing.assert_array_equal(engine.numpy(moments.codes), window)

    def test_atoms_that_leave_the_window_leave_nothing_behind(self, engine, rng):
        codes = rng.random((30, 4))
        codes[15:, 2] = 0.0
        moments = engine.moments(engine.array(codes[:15]))
        for code in engine.array(codes[15:]):
            moments.update(code)
            moments.revert()
        for matrix in (moments.covariance(), moments.second_differences()):
            assert not engine.numpy(matrix)[2].any()

    def test_what_a_slide_changes(self, engine, rng):
        codes = sparse_codes(rng, 31, 6)
        moments = engine.moments(engine.array(codes[:30]))
        before = engine.numpy(moments.covariance()).copy(), engine.numpy(moments.second_differences()).copy()
        since = moments.changes
        moments.slide(engine.array(codes[30]))
        change = moments.last_change(since)
        vectors = engine.numpy(change.vectors)
        for matrix, old, weights in (
            (moments.covariance(), before[0], change.covariance),
            (moments.second_differences(), before[1], change.curvature),
        ):
            moved = vectors.T @ engine.numpy(weights) @ vectors
            np.testing.assert_allclose(engine.numpy(matrix) - old, moved, atol=1e-12)

    def test_state_is_everything(self, engine, rng):
        codes = rng.random((20, 5))
        moments = engine.moments(engine.array(codes))
        state = {name: engine.numpy(value) for name, value in moments.state.items()}
        copy = engine.moments_from_state(state)
        for one in (moments, copy):
            one.slide(engine.array(codes[3]))
        np.testing.assert_array_equal(engine.numpy(copy.covariance()), engine.numpy(moments.covariance()))


class TestEmbedding:
    def test_the_closed_form_solves_the_generalised_eigenproblem(self, engine, rng):
        moments = engine.moments(engine.array(sparse_codes(rng, 300, 12)))
        found = engine.straightest(moments, 5, **WAYS)
        covariance, curvature = engine.numpy(moments.covariance()), engine.numpy(moments.second_differences())
        expected = scipy.linalg.eigh(curvature, covariance, eigvals_only=True)[:5]
        matrix = engine.numpy(found.matrix)
        np.testing.assert_allclose(engine.numpy(found.roughness), expected, rtol=1e-8)
        np.testing.assert_allclose(matrix @ covariance @ matrix.T, np.eye(5), atol=1e-8)
        np.testing.assert_allclose(matrix @ curvature @ matrix.T, np.diag(expected), atol=1e-6 * expected.max())

    def test_a_window_that_shows_some_mixtures_hardly_at_all(self, engine, rng):
        codes = sparse_codes(rng, 120, 10)
        codes[:, 8] = codes[:, 7] * (1 + 1e-5 * rng.standard_normal(120))
        codes[:, 9] = 0.0
        reference = TemporalEmbedding(n_components=4).fit(codes)
        found = TemporalEmbedding(n_components=4, device=engine.device).fit(codes)
        assert found.rank_ == reference.rank_
        np.testing.assert_allclose(found.embedding_, reference.embedding_, atol=1e-6)

    def test_following_stays_at_the_closed_form(self, engine, rng):
        codes = sparse_codes(rng, 830, 260)
        moments = engine.moments(engine.array(codes[:800]))
        tracked = engine.tracked(6, **WAYS)
        tracked.renew(moments)
        for code in engine.array(codes[800:806]):
            moments.slide(code)
            matrix = engine.numpy(tracked.renew(moments).matrix)
        exact = engine.numpy(engine.straightest(moments, 6, **WAYS).matrix)
        assert tracked.n_solved_ == 1
        np.testing.assert_allclose(matrix.T @ matrix, exact.T @ exact, atol=1e-4 * np.linalg.norm(exact, 2) ** 2)


class TestRecovery:
    @pytest.mark.parametrize("activity", [np.inf, 4.0, 1.0])
    def test_codes_are_those_of_the_reference(self, engine, rng, activity):
        embedding = rng.standard_normal((6, 20))
        embedding[:, 3] = 0.0
        embedding[:, 5] = 2.0 * embedding[:, 4]
        points = rng.standard_normal((4, 6))
        currents = rng.random((4, 20)) * (rng.random((4, 20)) < 0.2)
        bound = engine.array(np.array(activity)) if engine.device != "cpu" else activity
        own = engine.recovery(engine.array(embedding), 0.2, activity=bound)
        reference = Recovery(embedding, 0.2, activity=activity)
        together = engine.numpy(own.many(engine.array(points), engine.array(currents)))
        for point, current, code in zip(points, currents, together, strict=True):
            expected = reference(point, current)
            alone = engine.numpy(own(engine.array(point), engine.array(current)))
            np.testing.assert_allclose(alone, expected, atol=1e-9)
            np.testing.assert_allclose(code, expected, atol=1e-9)
            change = engine.numpy(own.change(engine.array(point), engine.array(current)))
            np.testing.assert_allclose(change, reference.change(point, current), atol=1e-9)

    @pytest.mark.parametrize("name", ["linear", "hold", "gain"])
    def test_the_code_that_follows(self, engine, rng, name):
        embedding, (previous, current) = rng.standard_normal((5, 9)), rng.random((2, 9))
        rule = make_extrapolation(name)
        found = engine.recover_next(
            engine.recovery(engine.array(embedding), 0.1), rule, engine.array(previous), engine.array(current)
        )
        recover = Recovery(embedding, 0.1)
        before, now = embedding @ previous, embedding @ current
        point = rule.advance(before, now)
        expected = current + recover.change(point - now, current) if rule.anchored else recover(point, current)
        np.testing.assert_allclose(engine.numpy(found), expected, atol=1e-9)
