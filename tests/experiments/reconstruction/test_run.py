"""Reconstruction through the embedding of all frames, and the stretches it finds."""

import numpy as np
import pytest

from oracles import literal
from oracles.solvers import lars_codes, recover_code
from psmt import SparseCoder
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import mse
from psmt.experiments.embedding_tasks import through_embedding
from psmt.experiments.phases import Phase, find_phases


def reconstruct(X, coder, *, n_components, lam):
    """MSE (time,) of each patch after coding, embedding, recovery and decoding."""
    given = {"n_components": n_components, "lam": lam, "device": coder.device}
    frames, _ = through_embedding(coder.transform(X), coder.dictionary_, **given)
    return mse(frames, X)


def test_agrees_with_a_plain_recomputation(engine, glide):
    X = glide[200:300]
    coder = SparseCoder(n_atoms=16, alpha=0.3, random_state=0, device=engine.device).fit(X)
    errors = reconstruct(X, coder, n_components=8, lam=0.05)
    A = lars_codes(X, coder.dictionary_, 0.3).T
    P = literal.embedding(A, 8, centred=True, full=False)
    for t in range(0, 100, 9):
        code = recover_code(P, P @ A[:, t], 0.05)
        assert code.sum() < 2 * A.sum(axis=0).max()
        assert errors[t] == pytest.approx(np.mean((code @ coder.dictionary_ - X[t]) ** 2), abs=1e-6)


def test_all_directions_without_a_price_give_what_layer_1_gives(engine, glide):
    X = glide[200:300]
    coder = SparseCoder(n_atoms=16, alpha=0.3, random_state=0, device=engine.device).fit(X)
    shown = coder.inverse_transform(coder.transform(X))
    errors = reconstruct(X, coder, n_components=16, lam=0.0)
    assert np.allclose(errors, np.mean((X - shown) ** 2, axis=1), atol=1e-5)


def test_the_calmest_and_the_liveliest_stretch_are_found():
    errors = np.ones(100)
    errors[5:10] = 0.0  # calmer still, but too early: no window lies before it
    errors[40:46] = 0.1
    errors[70:76] = 9.0
    errors[98:] = 50.0  # too late: a whole horizon has to follow
    errors[90:] = 1.0
    assert find_phases(errors, window=20, horizon=5) == [Phase("calm", 40), Phase("lively", 70)]


def test_stretches_at_the_borders_are_found():
    errors = np.ones(60)
    errors[20:26], errors[54:] = 0.0, 2.0
    assert find_phases(errors, window=20, horizon=5) == [Phase("calm", 20), Phase("lively", 54)]
    assert find_phases(errors[:26], window=20, horizon=5) == [Phase("calm", 20), Phase("lively", 20)]


def test_a_film_that_is_too_short_is_told_what_it_needs():
    with pytest.raises(NotEnoughFramesError, match="has 25 frames; window=20 and horizon=5 need at least 26"):
        find_phases(np.ones(25), window=20, horizon=5)
