"""Layer 1: exact codes, dictionaries of any making, and scikit-learn's manners."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from in_numpy import InNumpy
from oracles.dictionary import statistics, sweep
from oracles.solvers import lars_codes, nonnegative_least_squares
from psmt import SparseCoder, read_patches
from psmt.coding.dictionary import BATCH, DictionaryStatistics, first_atoms
from psmt.engines.numba.lasso import _CHUNK


@parametrize_with_checks([SparseCoder(n_atoms=8, max_epochs=2)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def learner(engine):
    return partial(SparseCoder, alpha=0.3, random_state=0, device=engine.device)


@pytest.fixture(scope="module")
def coder_of(engine):
    """Makes coders with given atoms."""
    return partial(SparseCoder.from_dictionary, alpha=0.3, device=engine.device)


@pytest.fixture(scope="module")
def coder(learner, glide):
    return learner(n_atoms=48).fit(glide)


def test_codes_agree_with_scikit_learn(coder, glide):
    codes = coder.transform(glide[::10])
    assert (codes >= 0).all()
    assert np.allclose(codes, lars_codes(glide[::10], coder.dictionary_, 0.3), atol=1e-9)


def objective(model, samples):
    codes = model.transform(samples)
    return 0.5 * np.sum((samples - model.inverse_transform(codes)) ** 2) + 0.3 * codes.sum()


def test_learning_lowers_the_objective(coder_of, learner, glide):
    coder = learner(n_atoms=48, max_epochs=6, tol=0.0).fit(glide)
    random = coder_of(glide[:48] / np.linalg.norm(glide[:48], axis=1, keepdims=True))
    assert len(coder.objective_) == 6
    assert coder.objective_[-1] < 0.8 * coder.objective_[0]
    assert objective(coder, glide) < 0.8 * objective(random, glide)


def test_learning_finds_the_atoms_that_made_the_samples(learner):
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((10, 20))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = rng.exponential(size=(800, 10)) * (rng.random((800, 10)) < 0.15)
    coder = learner(n_atoms=20, alpha=0.05, max_epochs=30, tol=0.0).fit(codes @ atoms)
    assert (coder.dictionary_ @ atoms.T).max(axis=0).min() > 0.95


def test_fit_stops_when_an_epoch_brings_little(learner, glide):
    assert len(learner(n_atoms=16, max_epochs=50, tol=0.2).fit(glide).objective_) < 10


def test_same_seed_same_bytes(engine, glide):
    one, two = (SparseCoder(n_atoms=16, alpha=0.3, random_state=3, device=engine.device).fit(glide) for _ in range(2))
    other = SparseCoder(n_atoms=16, alpha=0.3, random_state=4, device=engine.device).fit(glide)
    assert one.dictionary_.tobytes() == two.dictionary_.tobytes()
    assert one.transform(glide).tobytes() == two.transform(glide).tobytes()
    assert not np.allclose(one.dictionary_, other.dictionary_)


def test_partial_fit_improves_a_given_dictionary(coder_of, glide):
    coder = coder_of(3.0 * glide[:24])
    for _ in range(4):
        coder.partial_fit(glide)
    assert np.allclose(np.linalg.norm(coder.dictionary_, axis=1), 1.0)
    assert coder.objective_[-1] < coder.objective_[0]


def test_fit_further_learns_what_is_new_and_keeps_what_was_learned(learner, glide):
    old, new = glide[:300], glide[380:]
    coder = learner(n_atoms=48).fit(old)
    further = coder.fit_further(new)
    assert objective(further, new) < 0.9 * objective(coder, new)
    assert objective(further, old) < 1.1 * objective(coder, old)
    assert len(further.objective_) == 2 * len(coder.objective_), "as many passes as before"
    assert np.array_equal(coder.fit_further(new).dictionary_, further.dictionary_), "the coder stays as it was"


def test_fit_further_needs_what_fit_has_learned(coder_of, glide):
    with pytest.raises(NotFittedError, match="partial_fit"):
        coder_of(glide[:48]).fit_further(glide)


def test_given_atoms_of_any_norm_are_taken_as_they_are(coder_of, glide):
    atoms = np.random.default_rng(0).standard_normal((12, 36)) * np.logspace(-1, 1, 12)[:, None]
    coder = coder_of(atoms)
    assert np.array_equal(coder.dictionary_, atoms)
    expected = [nonnegative_least_squares(atoms.T, x, np.full(12, 0.6)) for x in glide[:5]]
    assert np.allclose(coder.transform(glide[:5]), expected, atol=1e-6)


def test_zero_atoms_are_never_used(coder_of, glide):
    atoms = np.random.default_rng(0).standard_normal((6, 36))
    atoms[2] = 0.0
    coder = coder_of(atoms)
    codes = coder.transform(glide[:20])
    assert codes.any()
    assert not codes[:, 2].any()
    assert np.allclose(np.delete(codes, 2, axis=1), coder_of(np.delete(atoms, 2, 0)).transform(glide[:20]))
    assert not coder_of(np.zeros((3, 36))).transform(glide[:4]).any()


def test_a_given_dictionary_is_copied(coder_of, glide):
    atoms = np.eye(36)[:5]
    coder = coder_of(atoms)
    atoms[:] = 0.0
    assert coder.dictionary_.any()


def test_codes_never_belong_to_an_earlier_dictionary(coder_of, glide):
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal((2, 12, 36))
    coder = coder_of(one)
    coder.transform(glide[:5])
    with pytest.raises(ValueError, match="read-only"):
        coder.dictionary_ *= 2.0
    coder.dictionary_ = two
    expected = coder_of(two).transform(glide[:5])
    assert np.array_equal(coder.transform(glide[:5]), expected)
    coder.partial_fit(glide)
    expected = coder_of(coder.dictionary_).transform(glide[:5])
    assert np.array_equal(coder.transform(glide[:5]), expected)


def test_a_copy_by_pickle_codes_alike_and_carries_no_more_than_the_atoms(coder, glide):
    codes = coder.transform(glide[:20])
    stored = pickle.dumps(coder._atoms)
    assert len(stored) < 1.1 * coder.dictionary_.nbytes + 1000
    assert np.array_equal(pickle.loads(pickle.dumps(coder)).transform(glide[:20]), codes)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_codes_follow_the_order_of_the_atoms(coder_of, seed):
    rng = np.random.default_rng(seed)
    atoms, X, order = rng.standard_normal((12, 6)), rng.standard_normal((8, 6)), rng.permutation(12)
    codes = coder_of(atoms, alpha=0.2).transform(X)
    assert np.allclose(coder_of(atoms[order], alpha=0.2).transform(X), codes[:, order], atol=1e-8)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
def test_scale_and_sign_belong_to_samples_and_atoms_alike(coder_of, seed, scale):
    rng = np.random.default_rng(seed)
    atoms, X = rng.standard_normal((12, 6)), rng.standard_normal((8, 6))
    codes = coder_of(atoms, alpha=0.2).transform(X)
    louder = coder_of(atoms, alpha=0.2 * scale).transform(scale * X)
    turned = coder_of(-atoms, alpha=0.2).transform(-X)
    larger = coder_of(scale * atoms, alpha=0.2 * scale).transform(X)
    assert np.allclose(louder, scale * codes, atol=1e-8 * scale)
    assert np.allclose(turned, codes, atol=1e-8)
    assert np.allclose(larger, codes / scale, atol=1e-8 / scale)


def test_codes_do_not_depend_on_company(coder, glide):
    codes = coder.transform(glide)
    order = np.random.default_rng(0).permutation(len(glide))
    assert np.allclose(coder.transform(glide[order]), codes[order], atol=1e-9)
    assert np.allclose(coder.transform(glide[7:8])[0], codes[7], atol=1e-9)


def test_black_samples_have_no_code(engine, coder):
    assert not coder.transform(np.zeros((3, 36))).any()
    black = SparseCoder(n_atoms=4, random_state=0, device=engine.device).fit(np.zeros((20, 5)))
    assert np.isfinite(black.dictionary_).all()


@pytest.mark.parametrize("n_samples", [1, 64, 65, 130])
def test_sparse_codes_have_the_values_of_dense_ones(coder, glide, monkeypatch, n_samples):
    monkeypatch.setattr("psmt.coding.dictionary.BATCH", 64)
    monkeypatch.setattr("psmt.coding.sparse_coder.BATCH", 64)
    samples = glide[:n_samples].copy()
    samples[n_samples // 2] = 0.0
    codes, sparse = coder.transform(samples), coder.transform(samples, sparse_output=True)
    assert isinstance(sparse, csr_array)
    assert sparse.shape == codes.shape
    assert sparse.has_canonical_format
    assert sparse.nnz == np.count_nonzero(codes)
    assert np.array_equal(sparse.toarray(), codes)
    assert np.allclose(coder.inverse_transform(sparse), coder.inverse_transform(codes), atol=1e-12)


def test_batches_leave_the_codes_of_the_cpu_as_they_are(glide, monkeypatch):
    """Bit for bit: a batch is a whole number of the chunks that are solved one sample after the other."""
    coder = SparseCoder.from_dictionary(glide[::9], alpha=0.3)
    whole = coder.transform(glide)
    for size in (64, 192):
        monkeypatch.setattr("psmt.coding.dictionary.BATCH", size)
        assert np.array_equal(coder.transform(glide, sparse_output=True).toarray(), whole)
    assert BATCH % _CHUNK == 0


def test_black_samples_alone_have_sparse_codes_too(coder):
    sparse = coder.transform(np.zeros((5, 36)), sparse_output=True)
    assert (sparse.shape, sparse.nnz) == ((5, 48), 0)
    assert np.array_equal(coder.inverse_transform(sparse), np.zeros((5, 36)))


def test_sparse_codes_are_dense_one_batch_at_a_time(engine, coder, glide, monkeypatch):
    monkeypatch.setattr("psmt.coding.dictionary.BATCH", 64)
    sizes, make_sparse = [], type(engine).sparse

    def watched(self, values):
        sizes.append(len(values))
        return make_sparse(self, values)

    monkeypatch.setattr(type(engine), "sparse", watched)
    monkeypatch.setattr(type(engine), "numpy", None)  # the way of dense arrays to the host
    coder.transform(glide[:150], sparse_output=True)
    assert sizes == [64, 64, 22]


@pytest.mark.slow
def test_sparse_codes_need_little_memory(glide):
    """Far less than the dense array at its peak, which is that of one batch."""
    coder = SparseCoder.from_dictionary(np.tile(glide, (3, 1)) + 0.1, alpha=100.0)
    samples = np.tile(glide, (200, 1))
    coder.transform(samples[:64])
    tracemalloc.start()
    codes = coder.transform(samples, sparse_output=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert codes.shape == (len(samples), 1260)
    assert peak < 0.4 * 8 * len(samples) * 1260


def test_few_samples_make_many_atoms(engine):
    X = np.random.default_rng(0).standard_normal((3, 5))
    coder = SparseCoder(n_atoms=12, alpha=0.1, random_state=0, device=engine.device).fit(X)
    assert len(np.unique(coder.dictionary_.round(9), axis=0)) == 12
    assert np.allclose(first_atoms(X, 12, np.random.RandomState(0)), first_atoms(X, 12, np.random.RandomState(0)))


def test_dead_atoms_are_replaced_by_what_is_explained_worst(engine):
    statistics, atoms = DictionaryStatistics(2, 3, engine), engine.array(np.eye(3)[:2])
    samples = engine.array([[1.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    codes = engine.array([[1.0, 0.0], [0.0, 0.0]])
    for _ in range(6):
        statistics.update(codes, samples)
    assert statistics.replace_dead(atoms, samples, samples - codes @ atoms) == 1
    assert np.allclose(engine.numpy(atoms), [[1, 0, 0], [0, 0, 1]])
    assert statistics.replace_dead(atoms, samples, samples - codes @ atoms) == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, "alpha=-1.0 is out of range; use a finite alpha > 0"),
        ({"alpha": 0}, "alpha=0 is out of range"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"alpha": "1"}, "alpha='1' is not a number; give a float > 0"),
        ({"alpha": True}, "alpha=True is not a number"),
        ({"n_atoms": 0}, "n_atoms=0 is too small; use n_atoms >= 1"),
        ({"n_atoms": 2.5}, "n_atoms=2.5 is not a whole number; give an int >= 1"),
        ({"n_atoms": True}, "n_atoms=True is not a whole number"),
        ({"max_epochs": 0}, "max_epochs=0 is too small"),
        ({"tol": -1e-3}, "tol=-0.001 is out of range"),
        ({"batch_size": "many"}, "batch_size='many' is not a whole number"),
        ({"gap_tol": 0.0}, "gap_tol=0.0 is out of range"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X = np.ones((10, 4))
    with pytest.raises((ValueError, TypeError), match=message):
        SparseCoder(**parameters).fit(X)
    with pytest.raises((ValueError, TypeError), match=message):
        SparseCoder(**parameters).partial_fit(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((4, 3), np.nan), "NaN"),
        (np.full((4, 3), np.inf), "infinity"),
        (np.ones(3), "Expected 2D array"),
        (np.ones((2, 3, 4)), "dim 3"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((4, 5)), "5 features"),
    ],
)
def test_bad_samples_are_refused(X, message):
    coder = SparseCoder.from_dictionary(np.eye(3))
    with pytest.raises(ValueError, match=message):
        coder.transform(X)


def test_codes_of_the_wrong_width_are_refused(coder):
    with pytest.raises(ValueError, match="codes have 5 columns, but there are 48 atoms"):
        coder.inverse_transform(np.ones((2, 5)))


def test_nothing_works_before_fit():
    for use in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(SparseCoder(), use)(np.ones((2, 3)))


def test_following_frames_have_the_codes_of_transform(learner, engine):
    film = read_patches("builtin:glide?frames=120", patch_size=8).values
    coder = learner(n_atoms=96, max_epochs=2).fit(film)
    codes, follow = coder.transform(film), InNumpy(engine, coder).transform_next
    for t in range(1, len(film)):
        np.testing.assert_allclose(follow(film[t], codes[t - 1]), codes[t], atol=1e-8)


def test_following_a_frame_that_stands_still_changes_nothing(engine):
    """Atoms of a film that never moves are all alike; the code must not hop from one to another."""
    x = np.sin(np.arange(8.0))
    coder = SparseCoder(n_atoms=24, alpha=0.1, random_state=0, device=engine.device).fit(np.tile(x, (100, 1)))
    code = coder.transform(x[None])[0]
    if engine.device == "torch:cpu":
        pytest.xfail("equal atoms are let in together there, and share the activity as rounding will have it")
    np.testing.assert_allclose(InNumpy(engine, coder).transform_next(x, code), code, atol=1e-12)


# The kernels of dictionary learning against their blackboard version


def batches(n_batches, size, n_atoms=30, n_features=12, seed=0):
    """Sparse codes and any samples."""
    rng = np.random.default_rng(seed)
    codes = rng.exponential(size=(n_batches, size, n_atoms)) * (rng.random((n_batches, size, n_atoms)) < 0.1)
    codes[:, :, -1] = 0.0  # an atom that no code uses
    return list(zip(codes, rng.standard_normal((n_batches, size, n_features)), strict=True))


@pytest.mark.parametrize("size", [1, 40, 1000])
def test_statistics_and_sweep(engine, size):
    given = batches(5, size)
    atoms = first_atoms(np.vstack([samples for _, samples in given]), 30, np.random.RandomState(0))
    learning = DictionaryStatistics(30, 12, engine)
    for codes, samples in given:
        learning.update(engine.array(codes), engine.array(samples))

    full = max(2 * 8 * 30 / size, 1.0)  # eight samples per atom are remembered
    code_code, code_sample = statistics(given, [(1 - 1 / min(batch, full)) ** 2 for batch in range(1, 6)])
    assert np.allclose(engine.numpy(learning.code_code), code_code, atol=1e-12)
    assert np.allclose(engine.numpy(learning.code_sample), code_sample, atol=1e-12)

    used = np.flatnonzero(given[-1][0].any(axis=0))
    expected = sweep(code_code, code_sample, atoms, used)
    own = engine.array(atoms)
    learning.improve(own)
    assert np.allclose(engine.numpy(own), expected, atol=1e-9)
