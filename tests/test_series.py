"""Several series in one model: seams, scales, penalties free of units, and what cannot be learned from."""

from itertools import pairwise

import numpy as np
import pytest

from psmt import PSMT, SparseCoder
from psmt.embedding.moments import WindowMoments
from psmt.errors import NotEnoughFramesError, SilentCodesError
from psmt.series import Scaling, check_lengths, first_frames, join_series

QUICK = {"n_atoms": 12, "window": 120, "alpha": 0.1, "lam": 0.01, "n_components": 4, "random_state": 0}


def turning(n=240, n_features=6, seed=0, speed=0.3):
    """A noisy rotation (n, n_features): three planes, each with a speed of its own."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)[:, None] * speed * np.array([1.0, 0.6, 1.7]) + rng.random(3) * 6
    planes = np.hstack([np.cos(t), np.sin(t)])[:, :n_features]
    return planes + 0.1 * rng.standard_normal((n, n_features))


def codes_of(n, m=5, seed=0):
    return np.maximum(np.random.default_rng(seed).standard_normal((n, m)).cumsum(0), 0)


def by_hand(codes, begins):
    """Second differences (k, n_atoms) of series that are looked at one by one."""
    parts = np.split(codes, np.flatnonzero(begins)[1:])
    return np.vstack([part[1:-1] - 0.5 * (part[:-2] + part[2:]) for part in parts if len(part) >= 3])


@pytest.mark.parametrize("n_atoms", [5, 120])
def test_no_second_difference_reaches_across_a_seam(n_atoms):
    codes = codes_of(50, n_atoms)
    if n_atoms > 100:  # so few entries that products go by way of the codes
        codes *= np.arange(n_atoms) % 40 == 0
    begins = first_frames([20, 2, 28])
    moments = WindowMoments.of(codes, begins=begins)
    bends = by_hand(codes, begins)
    assert np.allclose(moments.second_differences(), bends.T @ bends)
    vectors = np.random.default_rng(1).standard_normal((n_atoms, 3))
    _, rough = moments.window.sums(half_stencils=False).times(vectors, centred=True)
    assert np.allclose(rough, bends.T @ (bends @ vectors))


def test_seams_slide_through_the_window():
    codes, begins = codes_of(90), first_frames([25, 30, 35])
    moments = WindowMoments.of(codes[:40], begins=begins[:40])
    S = moments.second_differences().copy()
    for t in range(40, 90):
        since = moments.changes
        moments.slide(codes[t], begins=bool(begins[t]))
        first = begins[t - 39 : t + 1].copy()
        first[0] = True
        bends = by_hand(codes[t - 39 : t + 1], first)
        assert np.allclose(moments.second_differences(), bends.T @ bends)
        change = moments.last_change(since)
        S = S + change.vectors.T @ (change.curvature[:, None] * change.vectors)
        assert np.allclose(S, bends.T @ bends, atol=1e-8)
    again = WindowMoments(0).set_state(moments.get_state())
    assert np.array_equal(again.begins, moments.begins)


def test_half_stencils_are_for_one_series():
    with pytest.raises(ValueError, match="half_stencils=True is for one series"):
        PSMT(**QUICK, half_stencils=True).fit(np.vstack([turning(), turning(seed=1)]), lengths=[240, 240])


def test_lengths_must_add_up():
    assert check_lengths(None, 7) == [7]
    with pytest.raises(ValueError, match="add up to 9, but X has 10 frames"):
        check_lengths([4, 5], 10)
    with pytest.raises(ValueError, match="too small"):
        check_lengths([2, 8], 10)


def test_series_of_other_features_are_not_joined():
    with pytest.raises(ValueError, match="series 1 has 3 features, but those before it have 2"):
        join_series([np.zeros((4, 2)), np.zeros((4, 3))])


@pytest.mark.slow
@pytest.mark.parametrize("extrapolation", ["linear", "gain", "dynamics"])
def test_a_leap_between_series_is_never_seen(extrapolation):
    """Series that lie far apart are learned from as if they did not: nothing in the model knows of the leap."""
    series = [turning(seed=s) + 50.0 * s for s in range(3)]
    X, lengths = join_series(series)
    quick = QUICK | {"window": 480, "n_components": "auto", "lam": "auto"}
    apart = PSMT(**quick, standardise=True, extrapolation=extrapolation).fit(X, lengths=lengths)
    near = PSMT(**quick, standardise=True, extrapolation=extrapolation)
    near.fit(np.vstack([one - one.mean(0) for one in series]), lengths=lengths)
    assert np.allclose(apart.codes_, near.codes_, atol=1e-6)
    assert np.allclose(apart.predict(3), near.predict(3) + series[-1].mean(0), atol=1e-4)
    assert apart.surprise_ < 3


def test_begin_goes_on_with_another_series():
    first, second = turning(seed=1), 7.0 + 3.0 * turning(seed=2)
    model = PSMT(**QUICK, standardise=True, extrapolation="dynamics").fit(first).begin(second[:150])
    assert np.allclose(model._scaling.mean, second[:150].mean(0))
    assert not model.moments_.begins.any() or model.moments_.begins.sum() == 1
    errors = [
        [np.mean((model.update(x).predict() - y) ** 2), np.mean((x - y) ** 2)] for x, y in pairwise(second[150:191])
    ]
    own, copied = np.mean(errors, axis=0)
    assert own < 0.7 * copied


@pytest.mark.parametrize("extrapolation", ["linear", "dynamics"])
def test_standardised_models_know_no_units(extrapolation, tmp_path):
    X = turning()
    scales, means = np.array([1e-5, 35.0, 1.0, 1e6, 2.0, 9.0]), np.array([0.0, 9500.0, 3.0, -1e7, 0.0, 1.0])
    quick = QUICK | {"alpha": "auto", "standardise": True, "extrapolation": extrapolation}
    plain = PSMT(**quick).fit(X[:200])
    raw = PSMT(**quick).fit(X[:200] * scales + means)
    for x in X[200:220]:
        plain.update(x)
        raw.update(x * scales + means)
    expected = plain.predict(4)
    assert np.allclose((raw.predict(4) - means) / scales, expected, atol=1e-4)
    raw.save(tmp_path / "model.npz")
    again = PSMT.load(tmp_path / "model.npz")
    for model in (raw, again):
        for x in X[220:]:  # through the next time that a dynamics is learned afresh
            model.update(x * scales + means)
    assert np.array_equal(raw.predict(4), again.predict(4))
    turned_back = again.inverse_transform(again.transform(X[:3] * scales + means))
    assert np.abs((turned_back - means) / scales).max() < 10


def test_constant_channels_are_predicted_to_stay():
    X = np.column_stack([turning(), np.full(240, 9500.0), np.zeros(240)])
    model = PSMT(**QUICK, standardise=True, extrapolation="dynamics").fit(X[:220])
    for x in X[220:]:
        model.update(x)
    assert np.allclose(model.predict(5)[:, 6:], [9500.0, 0.0])


def test_a_constant_has_the_usual_scale_of_the_others():
    past = np.column_stack([np.full(100, 0.1 + 1e7), np.arange(100.0)])
    scaling = Scaling.of(past)
    assert scaling.scale[0] == scaling.scale[1] == np.std(np.arange(100.0))
    assert not scaling.standardise(past)[:, 0].any()
    assert Scaling.of(past[:, :1]).scale[0] == 0.1 + 1e7


def test_what_is_not_standardised_keeps_its_digits():
    frames = np.random.default_rng(0).standard_normal((5, 3))
    assert (Scaling.none(3).standardise(frames) == frames).all()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e5])
def test_alpha_auto_is_free_of_units(size):
    X = np.random.default_rng(0).standard_normal((300, 40)) @ np.random.default_rng(1).standard_normal((40, 40))
    coder = SparseCoder(n_atoms=60, alpha="auto", random_state=0, max_epochs=2).fit(size * X)
    used = np.count_nonzero(coder.transform(size * X), axis=1).mean()
    assert 4 < used < 16
    same = SparseCoder(n_atoms=60, alpha="auto", random_state=0, max_epochs=2)
    assert coder.alpha_ / size == pytest.approx(same.fit(X).alpha_)


def test_codes_that_are_all_zero_are_an_error_that_says_the_way_out():
    X = 1e-3 * turning()
    with pytest.raises(SilentCodesError, match=r"alpha=1 outweighs .* use alpha='auto', standardise=True"):
        PSMT(**QUICK | {"alpha": 1.0}).fit(X)
    for way_out in ({"alpha": "auto"}, {"standardise": True}):
        assert np.abs(PSMT(**QUICK | way_out).fit(X).predict()).max() > 0


def test_a_film_that_is_black_is_no_error():
    assert not PSMT(**QUICK | {"n_components": "auto"}).fit(np.zeros((150, 4))).predict().any()


def test_for_series_takes_any_length():
    X = 9500 + 35 * turning(n=90)
    model = PSMT.for_series(random_state=0).fit(X)
    assert (model.window_, len(model.dictionary_)) == (90, 16)
    assert np.all(np.abs(model.predict() - X.mean(0)) < 100)
    with pytest.raises(NotEnoughFramesError, match="X has 2 frames"):
        PSMT.for_series().fit(X[:2])
