"""Engines against each other, and what only an engine's own operations show; the rest is tested where it belongs."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import psmt
from in_numpy import InNumpy
from made_up_series import wave
from psmt import SparseCoder, TemporalEmbedding
from psmt.coding.dictionary import Atoms
from psmt.numerics.arrays import FUNCTIONS, LINALG, UNCHECKED_LINALG, array_namespace


def test_its_array_library_has_every_function_that_algorithms_use(engine):
    xp = array_namespace(engine.array([1.0]))
    linalg = f"{LINALG} {UNCHECKED_LINALG}" if engine.captures else LINALG
    assert [name for name in FUNCTIONS.split() if not hasattr(xp, name)] == []
    assert [name for name in linalg.split() if not hasattr(xp.linalg, name)] == []


def test_algorithms_use_no_other_functions():
    source = "".join(path.read_text() for path in Path(psmt.__file__).parent.rglob("*.py"))
    used = re.findall(r"(?:\bxp|\barray_namespace\([\w.\[\]]+\))\.(linalg\.)?(\w+)", source)
    assert {name for linalg, name in used if linalg} <= set(f"{LINALG} {UNCHECKED_LINALG}".split())
    assert {name for linalg, name in used if not linalg} <= {*FUNCTIONS.split(), "linalg", "inf", "nan", "int64"}
    assert len(used) > 100


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def atoms(rng):
    """Atoms (30, 12) of several norms, one of them zero."""
    given = rng.standard_normal((30, 12))
    given[4] = 0.0
    return given


def test_following_finds_the_same_code_from_any_start(engine, rng, atoms):
    ready, samples = InNumpy(engine, Atoms(atoms, engine)), rng.standard_normal((4, 12))
    codes = ready.code(samples, 0.2, tol=1e-12)
    for last in (codes[0], 0.0 * codes[0], codes[1] + 1.0):
        np.testing.assert_allclose(ready.code_next(samples[1], 0.2, tol=1e-12, last=last), codes[1], atol=1e-9)


def test_equal_atoms_and_empty_samples(engine):
    ready = InNumpy(engine, Atoms(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), engine))
    codes = ready.code(np.array([[2.0, 0.0], [0.0, 0.0]]), 0.5, tol=1e-12)
    np.testing.assert_allclose(codes[0, :2].sum(), 1.5)
    np.testing.assert_array_equal(codes[1], 0.0)


def test_decoding(engine, rng, atoms):
    codes = rng.random((3, 30))
    np.testing.assert_allclose(InNumpy(engine, Atoms(atoms, engine)).decode(codes), codes @ atoms)


def test_sparse_arrays_become_dense(engine, rng):
    values = rng.random((7, 5)) * (rng.random((7, 5)) < 0.3)
    np.testing.assert_array_equal(engine.numpy(engine.dense(csr_array(values))), values)


def test_dense_arrays_become_sparse(engine, rng):
    values = rng.random((7, 5)) * (rng.random((7, 5)) < 0.3)
    values[2] = 0.0
    for given in (values, 0.0 * values, values[:0], values[:, ::2]):
        sparse = engine.sparse(engine.array(given))
        assert sparse.has_canonical_format
        assert sparse.nnz == np.count_nonzero(given)
        np.testing.assert_array_equal(sparse.toarray(), given)


def test_all_engines_learn_one_dictionary(engine):
    film = wave(150)
    given = {"n_atoms": 16, "alpha": 0.1, "batch_size": 40, "max_epochs": 2, "random_state": 0}
    learned = SparseCoder(**given, device=engine.device).fit(film)
    reference = SparseCoder(**given).fit(film)
    np.testing.assert_allclose(learned.dictionary_, reference.dictionary_, atol=1e-8)
    np.testing.assert_allclose(learned.objective_, reference.objective_, rtol=1e-8)
    np.testing.assert_allclose(learned.transform(film), reference.transform(film), atol=1e-6)


def test_a_window_that_shows_some_mixtures_hardly_at_all(engine, rng):
    """Codes of a scene that moves, smooth, mostly near zero, with two atoms that are almost the same and a dead one."""
    smooth = np.cumsum(rng.standard_normal((120, 10)), axis=0)
    codes = np.maximum(smooth - np.quantile(smooth, 0.8, axis=0), 0.0) + 0.01 * np.abs(rng.standard_normal((120, 10)))
    codes[:, 8] = codes[:, 7] * (1 + 1e-5 * rng.standard_normal(120))
    codes[:, 9] = 0.0
    reference = TemporalEmbedding(n_components=4).fit(codes)
    found = TemporalEmbedding(n_components=4, device=engine.device).fit(codes)
    assert found.rank_ == reference.rank_
    np.testing.assert_allclose(found.embedding_, reference.embedding_, atol=1e-6)
