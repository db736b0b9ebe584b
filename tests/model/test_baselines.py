"""What PSMT is compared with: one interface, plain definitions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from psmt import PSMT
from psmt.model.baselines import (
    Baseline1,
    Baseline2,
    CopyCode,
    CopyLast,
    LinearTrend,
    MeanCode,
    MeanFrame,
    RidgeAutoregression,
)
from psmt.recovery import Recovery

SHARED = {"n_atoms": 16, "window": 60, "n_components": 6, "alpha": 0.1, "lam": 0.01, "random_state": 0}
METHODS = {
    "psmt": PSMT(**SHARED),
    "psmt_gain": PSMT(**SHARED | {"extrapolation": "gain"}),
    "baseline1": Baseline1(**SHARED),
    "baseline2": Baseline2(**SHARED),
    "copy": CopyLast(),
    "copy_code": CopyCode(**SHARED),
    "mean": MeanFrame(window=60),
    "mean_code": MeanCode(**SHARED),
    "linear": LinearTrend(),
    "ridge": RidgeAutoregression(),
    "ridge3": RidgeAutoregression(order=3, penalty=0.1),
}


@pytest.fixture(params=METHODS)
def method(request):
    return clone(METHODS[request.param])


@pytest.fixture
def fitted(method, film):
    return method.fit(film[:200])


def test_everyone_receives_and_predicts(fitted, film):
    for t in range(200, 230):
        assert fitted.update(film[t]) is fitted
        predicted = fitted.predict()
        assert predicted.shape == (8,)
        assert np.linalg.norm(predicted) < 4 * np.linalg.norm(film[t])
    rollout = fitted.predict(5)
    assert rollout.shape == (5, 8)
    assert np.isfinite(rollout).all()
    assert np.allclose(rollout[0], fitted.predict(), atol=1e-9)


def test_predictions_belong_to_the_caller(fitted):
    first = fitted.predict()
    first[:] = 99.0
    assert not np.any(fitted.predict() == 99.0)


def test_fitting_again_forgets(method, film):
    expected = clone(method).fit(film[:200]).predict()
    method.fit(film[50:250]).update(film[3])
    assert np.array_equal(method.fit(film[:200]).predict(), expected)


def test_everyone_has_readable_parameters(method):
    assert clone(method).get_params() == method.get_params()


def test_everyone_asks_to_be_fitted_first(method, film):
    with pytest.raises(NotFittedError):
        method.predict()
    with pytest.raises(NotFittedError):
        method.update(film[0])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(7), r"x has shape \(7,\); the model was fitted with frames of 8 features"),
        (np.full(8, np.nan), "NaN or infinite"),
    ],
)
def test_everyone_refuses_bad_frames(fitted, x, message):
    before = fitted.predict()
    with pytest.raises(ValueError, match=message):
        fitted.update(x)
    assert np.array_equal(fitted.predict(), before)


@pytest.mark.parametrize("X", [np.ones(8), np.ones((0, 8)), np.full((100, 8), np.inf), np.ones((100, 2, 4))])
def test_everyone_refuses_bad_series(method, X):
    with pytest.raises(ValueError, match="X has"):
        method.fit(X)


def test_everyone_refuses_bad_horizons(fitted):
    with pytest.raises(ValueError, match="horizon=0 is too small"):
        fitted.predict(0)
    for horizon in ("far", 2.5):
        with pytest.raises(TypeError, match=f"horizon={horizon!r} is not a whole number"):
            fitted.predict(horizon)


@pytest.mark.parametrize("method", [CopyLast(), LinearTrend(), RidgeAutoregression(order=3)], ids=lambda m: repr(m)[:5])
def test_what_took_over_a_state_goes_on_alike(method, film):
    first = clone(method).fit(film[:100]).update(film[100])
    state = first.get_state()
    second = clone(method).set_state(state)
    for x in film[101:104]:
        assert np.array_equal(second.update(x).predict(4), first.update(x).predict(4))
    assert np.array_equal(
        clone(method).set_state(state).predict(), clone(method).fit(film[:100]).update(film[100]).predict()
    )
    assert second.n_features_in_ == 8
    with pytest.raises(ValueError, match=r"x has shape \(7,\)"):
        second.update(np.ones(7))


def test_a_state_of_other_parameters_is_refused(film):
    state = RidgeAutoregression(order=3).fit(film[:100]).get_state()
    with pytest.raises(ValueError, match=r"the state holds 3 frames, but RidgeAutoregression\(\) looks at 2"):
        RidgeAutoregression().set_state(state)


# Definitions


def test_copy(film):
    model = CopyLast().fit(film[:100])
    assert np.array_equal(model.predict(), film[99])
    assert np.array_equal(model.update(film[100]).predict(3), np.tile(film[100], (3, 1)))


def test_the_mean_is_that_of_the_window(film):
    model = MeanFrame(window=60).fit(film[:200])
    assert np.allclose(model.predict(), film[140:200].mean(axis=0))
    assert np.allclose(model.update(film[200]).predict(), film[141:201].mean(axis=0))
    with pytest.raises(ValueError, match="at least 60 are needed"):
        MeanFrame(window=60).fit(film[:59])


def test_linear(film):
    model = LinearTrend().fit(film[:100])
    assert np.array_equal(model.predict(), 2 * film[99] - film[98])
    step = film[100] - film[99]
    assert np.allclose(model.update(film[100]).predict(3), [film[100] + k * step for k in (1, 2, 3)])


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_ridge_is_scikit_learns(film, order, penalty):
    X = film[:150]
    inputs = np.hstack([X[i : len(X) - order + i] for i in range(order)])
    changes = X[order:] - X[order - 1 : -1]
    absolute = penalty * np.trace(inputs.T @ inputs) / inputs.shape[1]
    oracle = Ridge(alpha=absolute, fit_intercept=False, solver="svd").fit(inputs, changes)
    model = RidgeAutoregression(order=order, penalty=penalty).fit(X)
    assert np.allclose(model.weights_, oracle.coef_.T, atol=1e-9)
    expected = X[-1] + oracle.predict(X[-order:].reshape(1, -1))[0]
    assert np.allclose(model.predict(), expected, atol=1e-9)
    latest = np.vstack([X, film[150]])[-order:]
    expected = film[150] + oracle.predict(latest.reshape(1, -1))[0]
    assert np.allclose(model.update(film[150]).predict(), expected, atol=1e-9)


def test_ridge_chooses_its_penalty_by_the_last_eighth(film):
    X = film[:162]
    inputs, changes = np.hstack([X[:-2], X[1:-1]]), X[2:] - X[1:-1]
    scale = np.trace(inputs[:140].T @ inputs[:140]) / 16
    errors = {}
    for penalty in RidgeAutoregression._PENALTIES:
        oracle = Ridge(alpha=penalty * scale, fit_intercept=False, solver="svd").fit(inputs[:140], changes[:140])
        errors[penalty] = np.mean((oracle.predict(inputs[140:]) - changes[140:]) ** 2)
    assert RidgeAutoregression().fit(X).penalty_ == min(errors, key=errors.get)


def test_ridge_learns_a_rotation():
    t = np.arange(200)
    X = np.column_stack([np.cos(t / 10), np.sin(t / 10)])
    model = RidgeAutoregression(penalty=1e-9).fit(X[:150])
    assert np.allclose(model.predict(20), X[150:170], atol=1e-3)


def test_ridge_needs_something_to_learn():
    with pytest.raises(ValueError, match="X has 2 frames; order=2 needs at least 3"):
        RidgeAutoregression().fit(np.ones((2, 3)))
    with pytest.raises(ValueError, match="X has 1 frames; at least 2 are needed"):
        RidgeAutoregression().fit(np.ones((1, 3)))
    with pytest.raises(ValueError, match="order=0 is too small"):
        RidgeAutoregression(order=0).fit(np.ones((9, 3)))
    with pytest.raises(ValueError, match=r"penalty=-1.0 is out of range"):
        RidgeAutoregression(penalty=-1.0).fit(np.ones((9, 3)))
    assert np.allclose(RidgeAutoregression().fit(np.zeros((9, 3))).predict(), 0)
    assert np.allclose(RidgeAutoregression().fit(np.ones((3, 3))).predict(), 1)


def test_copy_code_is_the_decoded_code(engine, film):
    model = CopyCode(**SHARED, device=engine.device).fit(film[:200])
    shown = model.coder_.inverse_transform(model.coder_.transform(film[200:201]))[0]
    assert np.allclose(model.update(film[200]).predict(3), np.tile(shown, (3, 1)), atol=1e-9)


def test_the_mean_code_is_that_of_the_window(engine, film):
    model = MeanCode(**SHARED, device=engine.device).fit(film[:200]).update(film[200])
    shown = model.coder_.inverse_transform(model.coder_.transform(film[141:201])).mean(axis=0)
    assert np.allclose(model.predict(3), np.tile(shown, (3, 1)), atol=1e-9)


def test_baseline_1_never_changes(engine, film):
    model, psmt = (cls(**SHARED, device=engine.device).fit(film[:200]) for cls in (Baseline1, PSMT))
    constant = model.predict()
    assert np.allclose(constant, psmt.predict(), atol=1e-9)
    for x in film[200:220]:
        assert np.array_equal(model.update(x).predict(), constant)
    assert np.allclose(model.predict(4), np.tile(constant, (4, 1)), atol=1e-12)


def test_baseline_2_keeps_its_embedding_while_codes_go_on(engine, film):
    model = Baseline2(**SHARED, device=engine.device).fit(film[:200])
    P = model.embedding_.copy()
    for x in film[200:220]:
        model.update(x)
        assert np.array_equal(model.embedding_, P)
    assert np.allclose(model.codes_, model.coder_.transform(film[160:220]), atol=1e-9)
    before, now = model.codes_[-2:]
    recover = Recovery(P, 0.01, activity=2 * model.codes_.sum(axis=1).max())
    assert np.allclose(model.predict(), recover(P @ (2 * now - before), now) @ model.dictionary_, atol=1e-8)
    psmt = PSMT(**SHARED, device=engine.device, coder=model.coder_).fit(film[:200])
    for x in film[200:220]:
        psmt.update(x)
    assert not np.allclose(psmt.embedding_, P)
