"""What the network adds to the blend: nothing at first, then as much as its record allows."""

import numpy as np
import pytest

from psmt import FramePredictor
from psmt.engines import engine_for
from psmt.video.cells import Grid
from psmt.video.correction import CONVOLUTIONAL, PIXELWISE, Correction


def hiding(n_frames, seed=0):
    """Discs that glide over a still texture (n_frames, 64, 64), each hiding it and showing it again."""
    rng = np.random.default_rng(seed)
    ground = rng.standard_normal((64, 64))
    ground = sum(np.roll(ground, (i, j), axis=(0, 1)) for i in range(3) for j in range(3)) / 9
    places, speeds = rng.uniform(0, 64, (6, 2)), rng.uniform(-2, 2, (6, 2))
    y, x = np.mgrid[:64, :64]
    film = np.repeat(0.5 + 0.3 * ground[None], n_frames, axis=0)
    for t in range(n_frames):
        for k, (place, speed) in enumerate(zip(places, speeds, strict=True)):
            down, right = (place + t * speed) % 80 - 8
            inside = 1 / (1 + np.exp(2 * (np.hypot(y - down, x - right) - 5)))
            film[t] += inside * (0.1 + 0.15 * k - film[t])
    return (film + 0.005 * rng.standard_normal(film.shape)).astype(np.float32)


def mean_error(model, film):
    errors = []
    for frame in film:
        errors.append(np.mean((model.predict() - frame) ** 2))
        model.update(frame)
    return np.mean(errors)


@pytest.mark.slow
def test_what_is_hidden_and_shown_again_is_foreseen_better():
    film = hiding(110)
    with_it, without = FramePredictor(rollouts=False).fit(film[:2]), FramePredictor(rollouts=False).fit(film[:2])
    without._learner.correction = None
    for frame in film[2:80]:
        with_it.update(frame)
        without.update(frame)
    assert mean_error(with_it, film[80:]) < 0.95 * mean_error(without, film[80:])


def test_noise_teaches_it_nothing():
    """Where nothing can be foreseen, its record holds it to nothing."""
    film = 0.5 + 0.1 * np.random.default_rng(0).standard_normal((60, 32, 32)).astype(np.float32)
    model, errors = FramePredictor(rollouts=False).fit(film[:40]), []
    for frame in film[40:]:
        corrected, advised = model.predict(), model._learner.correction._pending.uncorrected
        errors.append([np.mean((one - frame) ** 2) for one in (corrected, advised)])
        model.update(frame)
    ours, blend = np.mean(errors, axis=0)
    assert ours < 1.01 * blend


@pytest.mark.slow
def test_a_cut_and_a_failure_leave_it_no_record():
    film = hiding(80)
    model = FramePredictor(rollouts=False).fit(film[:60])
    assert model._learner.correction.gain.gains().max() > 0
    model.update(np.random.default_rng(1).random((64, 64)).astype(np.float32))
    assert model.cut_
    assert not model._learner.correction.gain.gains().any()
    model = FramePredictor(rollouts=False).fit(film[:60])
    # All stands still at once: copying is right, and the prediction is not.
    model.update(film[59]).update(film[59])
    assert not model._learner.correction.gain.gains().any()


@pytest.mark.parametrize("scale", [1e-30, 1e6])
def test_a_picture_that_goes_black_is_predicted_with_finite_numbers(scale):
    """Nothing varies any more, over place or time: there is no unit to measure anything by."""
    film = scale * hiding(22)[:, :40, :48].astype(np.float64)
    model = FramePredictor(rollouts=False).fit(film[:18])
    for share in (0.5, 0.2, 0.05, 0.0, 0.0, 0.0):
        assert np.isfinite(model.update(share * film[18]).predict()).all()
    for frame in film[18:]:
        assert np.isfinite(model.update(frame).predict()).all()


@pytest.mark.slow
def test_it_may_be_switched_off_and_on_while_the_film_runs():
    film = hiding(80)
    model, without = (FramePredictor(rollouts=False, correction=one).fit(film[:40]) for one in (True, False))
    assert not np.array_equal(model.predict(), without.predict())
    model.correction = False
    for frame in film[40:60]:
        assert np.array_equal(model.update(frame).predict(), without.update(frame).predict())
    model.correction = True
    for frame in film[60:]:
        model.update(frame)
    assert not np.array_equal(model.predict(), without.predict())


def test_the_unit_of_a_small_body_does_not_depend_on_the_still_ground_around_it():
    units = []
    for length in (48, 144):
        grid = Grid((length, length))
        correction = Correction(grid, 6, (0, 1), PIXELWISE)
        current, moving = (np.zeros((*shape, length, length), np.float32) for shape in ((), (2,)))
        current[:8, :8] = moving[0, 20:28, 20:28] = 1
        _, unit = correction._describe(current, moving, 0 * current, np.array([0, 1], np.float32))
        assert unit[24, 24] > 5 * unit[-1, -1]
        units.append(unit[24, 24])
    assert units[1] == pytest.approx(units[0], rel=0.05)


def test_corrections_are_made_with_averaged_weights():
    """An average of zeros corrects nothing, whatever the weights themselves are."""
    film = hiding(40)[:, :40, :48]
    model = FramePredictor(rollouts=False).fit(film[:30])
    network = model._learner.correction.network
    averages = [network.average]
    for frame in film[30:34]:
        model.update(frame)
        averages.append(0.9 * averages[-1] + 0.1 * network.weights)
        assert np.allclose(network.average, averages[-1], atol=1e-6)
    network.adopt()
    network.average = 0 * network.average
    network.adopt = lambda: None
    model.update(film[34])
    assert network.weights.any()
    assert not model._learner.correction._pending.change.any()


@pytest.mark.parametrize("n_frames", [1, 5])
def test_pixels_are_sampled_where_the_prediction_failed_and_weigh_the_same_in_all(engine, n_frames):
    """The weighted sum of what is drawn is, on average, that of all pixels, whatever the chances of each."""
    own, rng = engine.frames, np.random.default_rng(0)
    correction = Correction(Grid((40, 50), own), 6, (0, 1), PIXELWISE)
    residual = (0.01 * rng.standard_normal((40, 50))).astype(np.float32)
    residual[:8, :8] *= 30
    inputs = np.repeat((residual + 0.02)[None], 11, axis=0)
    inside = estimate = 0
    for k in range(n_frames):
        rows, aims = correction._sample(
            own.levels(0.5 * inputs[:6]),
            own.levels(inputs),
            own.levels(np.full((40, 50), 0.5)),
            own.levels(residual),
            own.levels([(0.3 + 0.61 * k) % 1, 2.0]),
        )
        rows, aims = own.numpy(rows), own.numpy(aims)
        assert rows.shape == (1024, 17)
        assert np.allclose(rows, rows[:, :1])
        share = aims[:, 1] / (2.0 * 0.5)
        assert np.allclose(aims[:, 0], 2.0 * share * (rows[:, 0] - 0.02), atol=1e-5)
        inside += np.mean(np.abs(rows[:, 0] - 0.02) > 0.05) / n_frames
        estimate += np.mean(share**2 * rows[:, 0] ** 2) / n_frames
    assert inside > 0.2
    assert estimate == pytest.approx(np.mean(inputs[0] ** 2), rel=0.05)


@pytest.mark.parametrize("shape", [(40, 50), (5, 30)])
def test_crops_have_the_pixels_around_them(engine, shape):
    """Each target lies in the middle of what the network sees of it, also at the edges, which are repeated."""
    own, form = engine.frames, CONVOLUTIONAL
    correction = Correction(Grid(shape, own), 6, (0, 1), form)
    number = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape) / 1000
    inputs = own.levels(np.repeat(number[None], 11, axis=0))
    unit = 0.5 + inputs[0]
    rows, aims = correction._sample(unit * inputs[:6], inputs, unit, inputs[0], own.levels([0.3, 1.0]))
    seen = own.numpy(rows).reshape(form.crops, form.seen, form.seen, 17)
    assert np.allclose(seen, seen[..., :1])
    aims = own.numpy(aims).reshape(form.crops, form.crop, form.crop, 2)
    edge = (form.seen - form.crop) // 2
    middle = seen[:, edge:-edge, edge:-edge, 0]
    # A target is weight * share * residual and its unit is weight * share * unit, with one share for each crop.
    assert np.allclose((0.5 + middle) * aims[..., 0] / aims[..., 1], middle, atol=1e-5)
    assert np.ptp(aims[..., 1] / (0.5 + middle), axis=(1, 2)).max() < 1e-6
    places = np.round(1000 * seen[..., 0]).astype(int)
    for axis, length in enumerate(shape):
        lines = places // shape[1] if axis == 0 else places % shape[1]
        steps = np.diff(np.moveaxis(lines, 1 + axis, -1), axis=-1)
        assert set(np.unique(steps)) <= {0, 1}
        if length >= form.seen:
            inside = np.diff(np.moveaxis(lines[:, edge:-edge, edge:-edge], 1 + axis, -1), axis=-1)
            assert (inside == 1).all()


@pytest.fixture
def convolving(monkeypatch):
    """The CPU's models begin with a convolutional network, as those of a GPU do."""
    monkeypatch.setattr(type(engine_for("cpu").frames), "convolves", True)


@pytest.mark.slow
def test_convolutions_foresee_better_what_is_hidden_and_shown_again(convolving):
    film = hiding(110)
    with_it = FramePredictor(rollouts=False).fit(film[:80])
    without = FramePredictor(rollouts=False, correction=False).fit(film[:80])
    assert with_it._learner.correction.network.form is CONVOLUTIONAL
    assert mean_error(with_it, film[80:]) < 0.95 * mean_error(without, film[80:])


@pytest.mark.parametrize("convolves", [True, False])
def test_a_model_keeps_the_form_of_its_network_on_a_device_that_prefers_the_other(monkeypatch, tmp_path, convolves):
    kernels = type(engine_for("cpu").frames)
    monkeypatch.setattr(kernels, "convolves", convolves)
    film = hiding(9)[:, :40, :48]
    model = FramePredictor(rollouts=False).fit(film[:6])
    model.save(tmp_path / "film.psmt")
    monkeypatch.setattr(kernels, "convolves", not convolves)
    loaded = FramePredictor.load(tmp_path / "film.psmt")
    loaded.rollouts = False
    assert loaded._learner.correction.network.form is (CONVOLUTIONAL if convolves else PIXELWISE)
    for frame in film[6:]:
        assert np.array_equal(loaded.predict(), model.predict())
        loaded.update(frame)
        model.update(frame)


@pytest.mark.slow
def test_a_model_with_convolutions_continues_on_the_cpu(engine, monkeypatch, tmp_path):
    """The engines agree to rounding, which training amplifies a little."""
    monkeypatch.setattr(engine.frames, "convolves", True)
    film = hiding(24)[:, :40, :48]
    model = FramePredictor(rollouts=False, device=engine.device).fit(film[:16])
    model.save(tmp_path / "film.psmt")
    loaded = FramePredictor.load(tmp_path / "film.psmt")
    loaded.rollouts = False
    for frame in film[16:]:
        assert np.abs(loaded.predict() - loaded._learner.correction._pending.uncorrected).max() > 5e-3
        assert np.allclose(loaded.predict(), model.predict(), atol=1e-3)
        loaded.update(frame)
        model.update(frame)


def test_a_frame_that_is_taken_back_leaves_no_crop(convolving):
    film = hiding(8)[:, :40, :48]
    model = FramePredictor(rollouts=False).fit(film[:7])
    before = model.get_state()
    undo = model._learner.undo()
    model._learner.receive(film[7], rollouts=False, correct=True)
    assert not np.array_equal(model.get_state()["correction.rows"], before["correction.rows"])
    undo()
    after = model.get_state()
    assert all(np.array_equal(after[name], before[name], equal_nan=True) for name in before)
