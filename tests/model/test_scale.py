"""Offsets, steps and units: nothing fails, and standardised models do not depend on them."""

import numpy as np
import pytest

from psmt import PSMT, FramePredictor, SparseCoder, TemporalEmbedding
from psmt.brain import fit_group
from psmt.errors import NumericalWarning, SilentCodesError
from psmt.model.baselines import (
    Baseline1,
    Baseline2,
    CodeExtrapolation,
    CopyCode,
    CopyLast,
    LinearTrend,
    MeanFrame,
    PixelGain,
    PrincipalComponents,
    RidgeAutoregression,
    SlowFeatures,
)

T = np.arange(400)[:, None]
WAVES = np.cos(T / 9 + np.arange(6))
SERIES = {
    "n_atoms": 16,
    "window": 60,
    "alpha": "auto",
    "standardise": True,
    "lam": 0.1,
    "n_components": 3,
    "random_state": 0,
}


def small(**given):
    return PSMT(**({"n_atoms": 24, "window": 100, "n_components": 4, "alpha": 0.1, "lam": 0.01} | given))


def predictions(X, model, start=250):
    model.fit(X[:start])
    return np.array([model.update(x).predict() for x in X[start:]])


@pytest.mark.parametrize(
    ("X", "given"),
    [
        (np.where(T < 200, 0.0, 1e4) + WAVES, {}),
        (np.where(T < 200, 0.0, 1e4) + WAVES, {"on_cut": "ignore"}),
        (WAVES + 1e6, {"extrapolation": "dynamics"}),
        (WAVES + 1e8, {}),
        (1e-30 * WAVES, {"alpha": 1e-31}),
        (1e30 * WAVES, {"alpha": 1e29}),
    ],
)
def test_a_step_an_offset_or_a_unit_makes_nothing_fail(X, given):
    X = X[:320]
    predicted = predictions(X, small(random_state=0, **given))
    assert np.isfinite(predicted).all()
    assert np.abs(predicted[30:-1] - X[281:]).max() < 3 * np.abs(X).max()


def test_a_window_that_is_far_from_zero_has_the_covariance_of_its_codes():
    from psmt.embedding.moments import WindowMoments

    codes = np.abs(np.random.default_rng(0).standard_normal((300, 5)))
    moments = WindowMoments.of(codes[:200] + 1e7)
    assert moments.cancels()
    for code in codes[200:]:
        moments.slide(code + 1e7)
    np.testing.assert_allclose(moments.covariance(), np.cov(codes[100:].T), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n_atoms", [24, 200])  # solved at every slide, and tracked
def test_one_huge_frame_without_regularisation_is_survived_and_reported(n_atoms):
    X = WAVES.copy()
    X[260] = 1e20
    model = small(rank_tol=1e-18, random_state=0, n_atoms=n_atoms, window=2 * n_atoms)
    with pytest.warns(NumericalWarning, match="rank_tol=1e-18"):
        assert np.isfinite(predictions(np.concatenate([X[:250]] * 2 + [X[250:300]]), model, start=500)).all()


# Numbers of 20 binary digits: with an offset of 2^20 none is lost.
EXACT = np.round(2**20 * (WAVES[:300] + 0.3 * np.sin(T[:300] / 5 + np.arange(6) ** 2))) / 2**20
MADE = {
    "for_series": lambda: PSMT.for_series(random_state=0),
    "standardise": lambda: small(standardise=True, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(
    ("a", "b"), [(1e-100, 0.0), (1e-9, 0.0), (7.0, 0.0), (1e100, 0.0), (1.0, 2**20), (2.0**300, 2**20)]
)
def test_standardised_predictions_do_not_depend_on_unit_and_offset(made, a, b):
    expected = predictions(EXACT, MADE[made]())
    found = predictions(a * (EXACT + b), MADE[made]())
    np.testing.assert_allclose(found / a - b, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("extrapolation", ["linear", "hold", "gain", "phase", "dynamics"])
@pytest.mark.parametrize(("a", "b"), [(1e-9, 0.0), (1e100, 0.0), (2.0**-300, 2**20)])
def test_no_choice_of_a_model_amplifies_rounding_errors(extrapolation, a, b):
    """Noise in few dimensions: ties in the penalty, atoms that are parallel, pairs of an embedding that are alike."""
    rng, X = np.random.default_rng(0), np.zeros((200, 8))
    rotation = 0.97 * np.linalg.qr(rng.standard_normal((8, 8)))[0]
    for i in range(1, len(X)):
        X[i] = rotation @ X[i - 1] + rng.standard_normal(8)
    for given in (X, np.cumsum(X, axis=0)[:, :2]):
        exact = np.round(2**20 * given) / 2**20
        made = PSMT.for_series(extrapolation=extrapolation, random_state=0)
        expected = predictions(exact, made, start=185)
        np.testing.assert_allclose(predictions(a * (exact + b), made, start=185) / a - b, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1e-90, 0.0), (1e90, 0.0), (2.0**300, 2**20)])
def test_a_constant_feature_is_predicted_exactly_and_has_an_effect_once_it_moves(made, a, b):
    X = np.column_stack([EXACT, np.full(len(EXACT), 0.125)])
    model = MADE[made]().fit(a * (X[:250] + b))
    frames = np.concatenate([X[250:260], X[260:270] + np.eye(7)[6]])
    predicted = np.array([model.update(a * (frame + b)).predict() for frame in frames])
    constant = a * (0.125 + b)
    np.testing.assert_allclose(predicted[:10, 6], constant, rtol=1e-15)
    expected = predictions(np.concatenate([X[:250], frames]), MADE[made]())
    np.testing.assert_allclose(predicted / a - b, expected, rtol=0, atol=1e-8)


def test_numbers_of_any_unit_can_be_saved(tmp_path):
    X = 1e100 * EXACT + 1e106
    model = MADE["standardise"]().fit(X[:250])
    model.save(tmp_path / "m")
    assert PSMT.load(tmp_path / "m").update(X[250]).predict().tobytes() == model.update(X[250]).predict().tobytes()
    with pytest.raises(ValueError, match="beyond 1e"):
        small().fit(X[:250])


def test_a_frame_that_overflows_once_it_is_standardised_is_refused():
    model = MADE["standardise"]().fit(1e-100 * EXACT[:250])
    with pytest.raises(ValueError, match="x, standardised, has a value of"):
        model.update(EXACT[250])


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(1e-100, 0.0), (1e-9, 0.0), (1e30, 0.0), (1.0, 2.0**20)])
def test_states_of_a_group_do_not_depend_on_unit_and_offset(a, b):
    def probabilities(people):
        return fit_group(people, n_atoms=6, n_components=2, n_states=2).transform(people)[0].probabilities

    people = [EXACT[:120], EXACT[120:240]]
    found = probabilities([a * (own + b) for own in people])
    np.testing.assert_allclose(found, probabilities(people), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("X", "given"), [(np.ones((80, 6)), {}), (WAVES[:80], {"alpha": 1e9})])
def test_a_group_whose_codes_are_constant_is_refused(X, given):
    with pytest.raises(SilentCodesError, match=r"alpha=.* use series that change, or a smaller alpha"):
        fit_group([X, X[::-1]], n_atoms=6, n_states=2, **given)


@pytest.mark.parametrize("scale", [1e-30, *(pytest.param(one, marks=pytest.mark.slow) for one in (1e-9, 1e6))])
def test_frames_of_any_unit_have_finite_predictions(scale):
    """A pattern of full contrast that moves: the largest sums that the model forms."""
    film = scale * np.sign(np.sin((np.arange(48)[None, None] - np.arange(30)[:, None, None]) / 4) + np.zeros((48, 1)))
    model = FramePredictor().fit(film[:25])
    for frame in film[25:]:
        assert np.isfinite(model.update(frame).predict(2)).all()


def test_levels_at_which_sums_would_overflow_are_refused():
    with pytest.raises(ValueError, match="beyond 1e"):
        FramePredictor().fit(np.full((4, 16, 16), 2e6))


ESTIMATORS = {
    "SparseCoder": lambda: SparseCoder(n_atoms=12, alpha="auto", random_state=0),
    "TemporalEmbedding": lambda: TemporalEmbedding(n_components=2),
    **{cls.__name__: cls for cls in (CopyLast, LinearTrend, PixelGain, PrincipalComponents, SlowFeatures)},
    "RidgeAutoregression": lambda: RidgeAutoregression(order="auto"),
    "MeanFrame": lambda: MeanFrame(window=50),
    **{cls.__name__: lambda cls=cls: cls(**SERIES) for cls in (Baseline1, Baseline2, CodeExtrapolation, CopyCode)},
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("values", ["offset 1e6", "unit 1e-30", "unit 1e30", "step 1e4", "one constant feature"])
def test_no_estimator_fails_at_an_offset_a_unit_or_a_step(name, values):
    X = {
        "offset 1e6": WAVES + 1e6,
        "unit 1e-30": 1e-30 * WAVES,
        "unit 1e30": 1e30 * WAVES,
        "step 1e4": np.where(T < 100, 0.0, 1e4) + WAVES,
        "one constant feature": np.where(np.arange(6) == 2, 5.0, WAVES),
    }[values][:170]
    model = ESTIMATORS[name]().fit(X[:150])
    if hasattr(model, "transform") and not hasattr(model, "update"):
        assert np.isfinite(model.transform(np.abs(X[150:]))).all()
        return
    predicted = np.array([model.update(x).predict() for x in X[150:]])
    assert np.isfinite(predicted).all()
    assert np.abs(predicted).max() < 10 * np.abs(X).max()
