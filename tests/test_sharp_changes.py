"""PSMT on series with steps, spikes and flashes: told, survived, and without a trace where there are none."""

import numpy as np
import pytest

from made_up_series import wave
from psmt import PSMT
from psmt.model.baselines import Baseline1, Baseline2, CopyCode

AT = 300


def thin(n_frames, n_features, noise=0.01):
    """A series in few dimensions: a frame off their plane takes codes of absurd activity, atoms that cancel."""
    t, k = np.arange(n_frames)[:, None], np.arange(n_features)
    smooth = np.cos(t / 15 + k) + 0.3 * np.sin(t / 9 + k**2)
    return smooth + noise * np.random.default_rng(0).standard_normal((n_frames, n_features))


def put_in(X, kind):
    X = X.copy()
    if kind == "step":
        X[AT:] += 3.0
    elif kind == "spike":
        X[AT, 0] += 30.0
    elif kind == "flash":
        X[AT : AT + 2] += 10.0
    return X


def small(X, cls=PSMT, **given):
    asked = {"n_atoms": 24, "window": 100, "alpha": 0.05, "n_components": 6, "lam": 0.01, "random_state": 0}
    return cls(**(asked | given)).fit(X)


def followed(model, X, start):
    """Predictions (n, n_features) of X[start + 1:], and the frames told as cuts."""
    predicted, cuts = [], []
    for frame in range(start, len(X) - 1):
        predicted.append(model.update(X[frame]).predict())
        if model.cut_:
            cuts.append(frame)
    return np.array(predicted), cuts


WIDE, NARROW = {"n_atoms": 64, "window": 190}, {"n_atoms": 24, "window": 80}


@pytest.mark.parametrize("kind", ["step", "spike", "flash"])
@pytest.mark.parametrize(
    ("n_features", "given"),
    [
        (12, WIDE | {"on_cut": "ignore"}),
        (12, WIDE | {"on_cut": "hold"}),
        pytest.param(12, WIDE | {"on_cut": "ignore", "extrapolation": "gain"}, marks=pytest.mark.slow),
        (5, NARROW | {"on_cut": "ignore"}),
        pytest.param(5, NARROW | {"on_cut": "ignore", "extrapolation": "hold"}, marks=pytest.mark.slow),
    ],
)
def test_no_prediction_is_ten_times_as_wrong_as_copying_at_the_change(kind, n_features, given):
    """A step of 3 in 12 channels was 1e6."""
    X = put_in(thin(AT + 30, n_features), kind)
    model = small(X[: AT - 4], alpha=0.01, **given)
    predicted, _ = followed(model, X, AT - 4)
    errors = np.mean((predicted - X[AT - 3 :]) ** 2, axis=1)
    copied = np.mean((X[AT - 4 : -1] - X[AT - 3 :]) ** 2, axis=1)
    assert errors.max() <= 10 * copied.max()


def test_the_code_is_held_for_25_frames():
    X = put_in(thin(AT + 60, 8), "step")
    holds, ignores = (small(X[: AT - 10], alpha=0.01, on_cut=on_cut) for on_cut in ("hold", "ignore"))
    own, cuts = followed(holds, X, AT - 10)
    papers, _ = followed(ignores, X, AT - 10)
    assert cuts == [AT]
    assert holds.surprise_ < 10
    np.testing.assert_array_equal(own[:10], papers[:10])
    errors, without = (np.mean((found - X[AT - 9 :]) ** 2, axis=1)[10:34] for found in (own, papers))
    assert errors.mean() < 0.5 * without.mean()
    held = small(X[: AT - 10], CopyCode, alpha=0.01)
    copied, _ = followed(held, X, AT - 10)
    np.testing.assert_array_equal(own[10:15], copied[10:15])


def test_the_old_scene_is_gone_when_a_window_has_passed():
    X = put_in(thin(AT + 40, 8), "step")
    short, long = (small(X[: AT - 10], alpha=0.01, n_atoms=8, n_components=4, window=window) for window in (20, 100))
    for model, n_held in ((short, 9), (long, 25)):  # 10 errors of the old scene must be known
        held = [model.update(x)._holds for x in X[AT - 10 :]]
        assert np.flatnonzero(held).tolist() == list(range(10, 10 + n_held))


@pytest.mark.parametrize(
    "extrapolation", ["linear", *(pytest.param(one, marks=pytest.mark.slow) for one in ("gain", "phase"))]
)
def test_without_cuts_nothing_changes_by_a_bit(extrapolation):
    X = wave(200)
    first, second = (small(X[:150], extrapolation=extrapolation, on_cut=on_cut) for on_cut in ("hold", "ignore"))
    own, cuts = followed(first, X, 150)
    papers, _ = followed(second, X, 150)
    assert cuts == []
    assert own.tobytes() == papers.tobytes()


@pytest.mark.parametrize("extrapolation", ["linear", pytest.param("hold", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["step", "flash"])
def test_a_model_predicts_the_same_however_it_came_to_its_window(kind, extrapolation):
    """At every sixth frame around a cut: by updates, by fitting the whole past, and by fitting the window alone."""
    X = put_in(thin(AT + 40, 8), kind)
    given = {"alpha": 0.01, "extrapolation": extrapolation, "coder": small(X[: AT - 10], alpha=0.01).coder_}
    updated, held = small(X[: AT - 10], **given), []
    for t in range(AT - 9, AT + 40):
        expected = updated.update(X[t - 1]).predict(3)
        held.append(updated._holds)
        for past in (X[:t], X[t - 100 : t]) if t % 6 == 0 else ():
            fitted = small(past, **given)
            np.testing.assert_allclose(fitted.predict(3), expected, atol=1e-6, err_msg=f"{t - AT} frames after")
            assert (fitted.cut_, fitted._holds) == (updated.cut_, updated._holds)
    assert 24 < sum(held) < 28


def test_gains_do_not_learn_from_steps_across_a_cut():
    X = put_in(wave(AT + 60), "step")
    gains = {}
    for on_cut in ("hold", "ignore"):
        model = small(X[: AT - 10], extrapolation="gain", on_cut=on_cut)
        before = model._extrapolation.gains(1)[0]
        followed(model, X[: AT + 4], AT - 10)
        gains[on_cut] = abs(model._extrapolation._common[1, 0])
        assert np.isfinite(before)
    assert gains["hold"] < 0.2 * gains["ignore"]


def test_surprise_does_not_depend_on_predicting():
    X = put_in(wave(AT + 30), "flash")
    silent, asked = small(X[: AT - 10]), small(X[: AT - 10])
    for x in X[AT - 10 :]:
        silent.update(x)
        asked.update(x).predict()
        asked.predict(3)
        assert (silent.surprise_, silent.cut_) == (asked.surprise_, asked.cut_)
    assert silent.predict().tobytes() == asked.predict().tobytes()


@pytest.mark.parametrize("cls", [Baseline1, CopyCode])
def test_what_follows_no_embedding_or_no_window_has_nothing_to_hold(cls):
    X = put_in(wave(AT + 20), "step")
    first, second = (small(X[: AT - 10], cls, on_cut=on_cut) for on_cut in ("hold", "ignore"))
    own, cuts = followed(first, X, AT - 10)
    assert cuts == [AT]
    np.testing.assert_array_equal(own, followed(second, X, AT - 10)[0])


@pytest.mark.parametrize("later", [0, 3, *(pytest.param(later, marks=pytest.mark.slow) for later in (1, 20))])
@pytest.mark.parametrize("cls", [PSMT, Baseline2])
def test_a_saved_model_goes_on_alike_after_a_cut(tmp_path, later, cls):
    X = put_in(thin(AT + 60, 8), "step")
    model = small(X[: AT - 10], cls, alpha=0.01)
    followed(model, X[: AT + later + 2], AT - 10)
    model.save(tmp_path / "m")
    loaded = cls.load(tmp_path / "m")
    assert (loaded.surprise_, loaded.cut_, loaded.on_cut) == (model.surprise_, model.cut_, "hold")
    for x in X[AT + later + 1 : AT + later + 12]:
        assert loaded.update(x).predict().tobytes() == model.update(x).predict().tobytes()
        assert (loaded.surprise_, loaded.cut_) == (model.surprise_, model.cut_)


def test_a_file_from_before_there_were_surprises_is_read(tmp_path):
    X = wave(160)
    model = small(X[:150])
    header, arrays = model.get_header(), model.get_state()
    del header["parameters"]["on_cut"]
    arrays = {name: value for name, value in arrays.items() if not name.startswith(("watch.", "aftermath."))}
    loaded = PSMT.from_stored(header, arrays)
    np.testing.assert_allclose(loaded.predict(), model.predict(), atol=1e-12)
    assert not loaded.update(X[150]).cut_


def test_engines_agree_after_a_cut(engine):
    X = put_in(wave(AT + 20), "step")
    own, reference = small(X[: AT - 5], device=engine.device), small(X[: AT - 5])
    for x in X[AT - 5 :]:
        np.testing.assert_allclose(own.update(x).predict(), reference.update(x).predict(), atol=1e-5)
        assert (own.cut_, own.surprise_) == (reference.cut_, reference.surprise_)


def test_an_unknown_response_is_named():
    with pytest.raises(ValueError, match="on_cut='restart'"):
        small(wave(150), on_cut="restart")
