"""What PSMT is compared with: one interface, plain definitions."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from psmt import PSMT, read_patches
from psmt.data.patches import standardise
from psmt.model.baselines import (
    Baseline1,
    Baseline2,
    CodeExtrapolation,
    CopyCode,
    CopyLast,
    LinearTrend,
    MeanCode,
    MeanFrame,
    PatchMotion,
    PixelGain,
    PrincipalComponents,
    RidgeAutoregression,
    SlowFeatures,
)
from psmt.model.baselines.ridge import PENALTIES
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
    "ridge_auto": RidgeAutoregression(order="auto"),
    "code_line": CodeExtrapolation(**SHARED),
    "code_gain": CodeExtrapolation(**SHARED | {"extrapolation": "gain"}),
    "pixel_gain": PixelGain(),
    "pca_var": PrincipalComponents(),
    "sfa": SlowFeatures(),
    "motion": PatchMotion(picture_shape=(2, 4)),
}


@pytest.fixture(params=METHODS)
def method(request):
    return clone(METHODS[request.param])


@pytest.fixture(scope="module", params=METHODS)
def fitted_once(request, film):
    return clone(METHODS[request.param]).fit(film[:200])


@pytest.fixture
def fitted(fitted_once):
    return deepcopy(fitted_once)


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
    with pytest.raises(ValueError, match="horizon=1000000000 is too large; use horizon <= 1000000"):
        fitted.predict(10**9)
    for horizon in ("far", 2.5):
        with pytest.raises(TypeError, match=f"horizon={horizon!r} is not a whole number"):
            fitted.predict(horizon)


@pytest.mark.parametrize(
    "method",
    [
        CopyLast(),
        LinearTrend(),
        RidgeAutoregression(order=3),
        RidgeAutoregression(order="auto"),
        PixelGain(),
        PrincipalComponents(),
        SlowFeatures(),
        PatchMotion(picture_shape=(4, 2)),
    ],
    ids=lambda method: type(method).__name__,
)
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
    for penalty in PENALTIES:
        oracle = Ridge(alpha=penalty * scale, fit_intercept=False, solver="svd").fit(inputs[:140], changes[:140])
        errors[penalty] = np.mean((oracle.predict(inputs[140:]) - changes[140:]) ** 2)
    assert RidgeAutoregression().fit(X).penalty_ == min(errors, key=errors.get)


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


# Without the embedding


def test_a_line_through_codes_is_decoded_as_psmt_decodes(engine, film):
    model = CodeExtrapolation(**SHARED, device=engine.device).fit(film[:200]).update(film[200])
    before, now = model.coder_.transform(film[199:201])
    expected = (np.array([2 * now - before, 3 * now - 2 * before])) @ model.dictionary_
    assert np.allclose(model.predict(2), expected, atol=1e-9)


def test_codes_with_a_gain_repeat_that_share_of_their_last_step(engine, film):
    """The gain is the lag-one correlation of the decoded steps, weighted by time, less its standard error."""
    given = SHARED | {"extrapolation": "gain", "device": engine.device}
    model = CodeExtrapolation(**given).fit(film[:200])
    for x in film[200:220]:
        model.update(x)
    codes = model.coder_.transform(film[140:220])
    steps = np.diff(codes @ model.dictionary_, axis=0)
    products, energies = np.sum(steps[:-1] * steps[1:], axis=1), np.sum(steps**2, axis=1)
    energies = (energies[:-1] + energies[1:]) / 2
    weights = np.exp(-np.arange(len(products))[::-1] / 500)
    correlation = weights @ products / (weights @ energies)
    gain = correlation - np.sqrt(weights @ energies**2) / (weights @ energies)
    assert 0 < gain < 1
    expected = (codes[-1] + gain * (codes[-1] - codes[-2])) @ model.dictionary_
    assert np.allclose(model.predict(), expected, atol=1e-6)


def test_after_a_cut_the_code_is_held_as_in_psmt():
    first, second = (
        read_patches(f"builtin:glide?frames=210&speed=0.2&seed={k}&size=48", frame_size=48) for k in (0, 3)
    )
    given = {"n_atoms": 16, "window": 80, "n_components": 8, "lam": 0.05, "random_state": 0}
    models = [cls(**given).fit(first.values[:200]) for cls in (PSMT, CodeExtrapolation, CopyCode)]
    for x in second.values[:2]:
        psmt, line, copied = (model.update(x) for model in models)
    assert np.allclose(psmt.predict(), copied.predict(), atol=1e-9)
    assert np.allclose(line.predict(), copied.predict(), atol=1e-9)
    ignoring = CodeExtrapolation(**given, on_cut="ignore").fit(first.values[:200])
    assert not np.allclose(ignoring.update(second.values[0]).predict(), copied.predict(), atol=0.1)


def test_other_rules_need_the_embedding(film):
    with pytest.raises(ValueError, match="extrapolation='phase'"):
        CodeExtrapolation(**SHARED | {"extrapolation": "phase"}).fit(film[:200])


# Learned gains


def test_the_gain_of_pixels_is_that_of_the_series():
    rng = np.random.default_rng(0)
    steps = np.zeros((4000, 5))
    for t in range(1, len(steps)):
        steps[t] = 0.6 * steps[t - 1] + rng.standard_normal(5)
    X = np.cumsum(steps, axis=0)
    model = PixelGain().fit(X)
    gain = (model.predict() - X[-1]) / (X[-1] - X[-2])
    assert np.ptp(gain) < 1e-9
    assert gain[0] == pytest.approx(0.6, abs=0.08)
    still = PixelGain().fit(np.cumsum(rng.standard_normal((4000, 5)), axis=0))
    assert np.allclose(still.predict(), still.predict(2)[1], atol=0.2)


def test_gains_go_on_learning():
    rng = np.random.default_rng(1)
    walk, line = rng.standard_normal((300, 4)).cumsum(axis=0), np.arange(1500.0)[:, None] * [1.0, -2.0, 0.5, 3.0]
    model = PixelGain().fit(walk)
    assert np.abs(model.predict() - walk[-1]).max() < 1
    for x in line:
        model.update(x)
    assert np.allclose(model.predict(), 2 * line[-1] - line[-2], atol=0.5)


def moving(n, speed, side=16, seed=0):
    """A periodic texture that drifts by `speed` pixels down and half of it to the right: (n, side * side)."""
    rng = np.random.default_rng(seed)
    waves = [(rng.integers(1, 4), rng.integers(-3, 4), rng.uniform(0, 2 * np.pi)) for _ in range(6)]
    y, x = np.mgrid[:side, :side]
    angle = 2 * np.pi / 40
    return np.array(
        [
            sum(np.cos(angle * (a * (y - speed * t) + b * (x - 0.5 * speed * t)) + phase) for a, b, phase in waves)
            for t in range(n)
        ]
    ).reshape(n, -1)


def test_motion_follows_a_texture_better_than_copying_and_than_a_line():
    X = moving(330, 0.7)
    errors = {}
    for name, model in {"motion": PatchMotion(picture_shape=(16, 16)), "linear": LinearTrend()}.items():
        model.fit(X[:300])
        predicted = [model.update(X[t]).predict() for t in range(300, 329)]
        errors[name] = np.mean((np.array(predicted) - X[301:]) ** 2) / np.mean(np.diff(X[300:], axis=0) ** 2)
    assert errors["motion"] < 0.1
    assert errors["motion"] < errors["linear"]
    with pytest.raises(ValueError, match=r"picture_shape=\(4, 4\) has 16 pixels, but X has 256 features"):
        PatchMotion(picture_shape=(4, 4)).fit(X)


def test_on_noise_motion_is_no_worse_than_copying():
    X = np.random.default_rng(0).standard_normal((640, 64))
    model = PatchMotion(picture_shape=(8, 8)).fit(X[:600])
    predicted = [model.update(X[t]).predict() for t in range(600, 639)]
    assert np.mean((predicted - X[601:]) ** 2) < np.mean(np.diff(X[600:], axis=0) ** 2)


# Ridge of several orders, and subspaces


def test_ridge_takes_as_many_frames_as_the_past_asks_for():
    rng = np.random.default_rng(0)
    for order, weights in ((1, [0.9]), (2, [1.6, -0.9]), (3, [0.0, 0.0, 0.9])):
        X = np.zeros((3000, 3))
        for t in range(order, len(X)):
            X[t] = sum(w * X[t - 1 - k] for k, w in enumerate(weights)) + rng.standard_normal(3)
        model = RidgeAutoregression(order="auto").fit(X)
        assert model.order_ >= order
        assert np.allclose(model.predict(), sum(w * X[-1 - k] for k, w in enumerate(weights)), atol=0.3)


def test_orders_compete_on_the_same_frames(film):
    """The order and penalty are the best of those that are tried, by scikit-learn."""
    X = film[:164]
    errors = {}
    for order in (1, 2, 3, 4):
        inputs = np.hstack([X[4 - order + i : len(X) - order + i] for i in range(order)])
        changes = X[4:] - X[3:-1]
        for penalty in PENALTIES:
            alpha = penalty * np.trace(inputs[:140].T @ inputs[:140]) / inputs.shape[1]
            oracle = Ridge(alpha=alpha, fit_intercept=False, solver="svd").fit(inputs[:140], changes[:140])
            errors[order, penalty] = np.sum((oracle.predict(inputs[140:]) - changes[140:]) ** 2)
    model = RidgeAutoregression(order="auto").fit(X)
    assert (model.order_, model.penalty_) == min(errors, key=errors.get)


def test_principal_components_follow_a_rotation_in_their_plane_and_copy_the_rest():
    rng = np.random.default_rng(0)
    t = np.arange(400)
    plane = np.linalg.qr(rng.standard_normal((10, 2)))[0].T
    X = 3 * np.column_stack([np.cos(t / 5), np.sin(t / 5)]) @ plane + 0.01 * rng.standard_normal((400, 10))
    model = PrincipalComponents().fit(X[:399])
    assert np.mean((model.predict() - X[399]) ** 2) < 1e-3
    inside = plane.T @ plane
    moved = model.predict() - X[398]
    assert np.linalg.norm(moved - inside @ moved) < 0.05 * np.linalg.norm(moved)


def test_slow_features_are_the_slowest_directions_and_go_straight_on():
    """Of two sources that were mixed, one slow and one fast, only the slow one continues its line."""
    rng = np.random.default_rng(0)
    t = np.arange(2000)
    sources = np.column_stack([np.sin(t / 40), rng.standard_normal(2000)])
    mixing = np.array([[1.0, 0.4], [-0.6, 2.0]])
    X = sources @ mixing.T
    model = SlowFeatures().fit(X[:1990])
    step = sources[1989] - sources[1988]
    assert np.allclose(model.predict() - X[1989], mixing @ [step[0], 0.0], atol=0.02 + 0.05 * abs(step[1]))


@pytest.mark.parametrize(
    "model", [PrincipalComponents(), SlowFeatures(), PixelGain(), PatchMotion(picture_shape=(1, 3))]
)
def test_where_nothing_varies_everything_is_copied(model):
    if isinstance(model, PatchMotion):
        model.set_params(picture_shape=(2, 2))
    for n in (2, 3, 9):
        assert np.allclose(clone(model).fit(np.full((n, 4), 3.0)).predict(), 3.0)


# A grating and a drifting texture: where a linear map of the last frames is exact, and the embedding is not


def grating():
    """A grating that moves by a twentieth of a radian per frame, with a little noise (430, 256)."""
    y, x = np.mgrid[:16, :16]
    clean = np.array([np.sin(0.9 * x + 0.4 * y - 0.05 * t).ravel() for t in range(430)])
    return clean + 0.002 * np.random.default_rng(0).standard_normal(clean.shape)


def drifting_texture():
    """Smooth noise that drifts by half a pixel per frame (430, 256)."""
    texture = gaussian_filter(np.random.default_rng(0).standard_normal((64, 64)), 2.0, mode="wrap")
    y, x = np.mgrid[:16, :16]
    places = [(y + 0.5 * t, x + 0.2 * t) for t in range(430)]
    return np.array([map_coordinates(texture, place, order=3, mode="grid-wrap").ravel() for place in places])


@pytest.mark.parametrize(
    ("make", "below"), [(grating, 0.01), pytest.param(drifting_texture, 0.12, marks=pytest.mark.slow)]
)
def test_ridge_is_far_below_copying_where_pictures_drift_and_the_line_of_psmt_is_above(make, below):
    X = standardise(make()).values
    copied = np.mean(np.diff(X[400:], axis=0) ** 2)

    def error(model):
        model.fit(X[:400])
        return np.mean([(model.update(X[t]).predict() - X[t + 1]) ** 2 for t in range(400, 429)]) / copied

    assert error(RidgeAutoregression(order="auto")) < below
    assert error(PSMT(n_atoms=48, window=144, random_state=0)) > 1
