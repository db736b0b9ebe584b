"""FramePredictor on films whose next frame is known."""

import weakref
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import psmt.extrapolation
from psmt import PSMT, FramePredictor, open_frames
from psmt.data import FrameStream
from psmt.errors import FrameSourceError, ModelFileError, NotEnoughFramesError
from psmt.video import FRAME_EXTRAPOLATIONS, Prior
from psmt.video.candidates import PLANES, CandidateGroup, Candidates
from psmt.video.prior import read_prior
from video.conftest import gliding, texture


def ratios(model, film, start):
    """Squared error over that of copying (n,) of each frame from `start` on, and the surprise and cut of each."""
    scores = []
    for last, frame in zip(film[start - 1 : -1], film[start:], strict=True):
        predicted = model.predict()
        copied = np.mean((last - frame) ** 2)
        model.update(frame)
        scores.append((np.mean((predicted - frame) ** 2) / max(copied, 1e-12), model.surprise_, model.cut_))
    error, surprise, cut = np.array(scores).T
    return error, surprise, cut.astype(bool)


@pytest.fixture(scope="module")
def glide():
    return gliding((0.6, -1.3), 60)


@pytest.fixture(scope="module")
def fitted_once(glide):
    return FramePredictor().fit(glide[:40])


@pytest.fixture
def fitted(fitted_once):
    """A model of the first 40 frames of the glide, of its own for each test."""
    return deepcopy(fitted_once)


@pytest.mark.parametrize("velocity", [(0.6, -1.3), pytest.param((2.5, 0.0), marks=pytest.mark.slow)])
def test_steady_motion_is_predicted(velocity):
    film = gliding(velocity, 32)
    error, _, cut = ratios(FramePredictor().fit(film[:24]), film, 24)
    assert error.mean() < 0.04
    assert not cut.any()


@pytest.mark.parametrize("scene", [texture(), np.full((20, 20), 3.0)])
def test_a_still_or_flat_scene_is_copied_exactly(scene):
    still = np.repeat(scene[None].astype(np.float32), 20, axis=0)
    model = FramePredictor().fit(still)
    assert np.array_equal(model.predict(horizon=4), still[:4])
    assert scene.std() == 0 or model.update(still[0]).surprise_ == 0.0


def test_noise_on_a_still_scene_is_never_worse_than_copying():
    noisy = texture() + np.random.default_rng(0).normal(0, 4, (32, 48, 56))
    error, _, cut = ratios(FramePredictor().fit(noisy[:20]), noisy, 20)
    # Copying carries the noise of one frame into the next; the mean of several frames would reach one half.
    assert error.max() < 0.9
    assert not cut.any()


@pytest.mark.parametrize(("extrapolation", "largest"), [("phase", 1.15), ("gain", 1.05)])
def test_frames_that_cannot_be_predicted_are_no_worse_than_copied(extrapolation, largest):
    """Steps of a random walk, different at every pixel: the last frame is the best prediction."""
    walk = 128 + np.cumsum(np.random.default_rng(0).standard_normal((45, 40, 40)), axis=0)
    error, _, _ = ratios(FramePredictor(extrapolation=extrapolation).fit(walk[:30]), walk, 30)
    assert error.mean() < 1.02
    assert error.max() < largest


@pytest.mark.slow
@pytest.mark.parametrize("shaking", [False, True])
def test_motion_that_stops_at_once_is_over(shaking):
    """Nobody knows of the first still frame before it comes; from then on there is only the noise of the sensor."""
    rng = np.random.default_rng(0)
    moving = gliding((0.6, -1.3), 50)
    if shaking:
        moving = np.array([np.roll(moving[0], by, axis=(0, 1)) for by in rng.integers(-4, 5, (50, 2))])
    film = np.concatenate([moving, np.repeat(moving[-1:], 31, axis=0)])
    film += rng.normal(0, 2, film.shape)
    error, _, cut = ratios(FramePredictor().fit(film[:51]), film, 51)
    assert not cut.any()
    assert error.max() < 1.1
    assert error[-10:].mean() < 0.9


def test_linear_goes_on_along_the_line():
    fade = texture() + np.arange(12.0)[:, None, None] * np.linspace(-3, 5, 56)
    model = FramePredictor(extrapolation="linear").fit(fade[:6])
    assert np.allclose(model.predict(horizon=6), fade[6:], atol=1e-3)


def test_hold_copies(glide):
    model = FramePredictor(extrapolation="hold").fit(glide[:10]).update(glide[10])
    assert np.array_equal(model.predict(horizon=2), np.repeat(glide[10:11].astype(np.float32), 2, axis=0))


@pytest.mark.slow
def test_gain_lies_between_copying_and_turning(glide):
    """Repeating the last change helps where motion is slower than the detail, but motion is not a straight line."""
    by_name = {
        name: ratios(FramePredictor(extrapolation=name).fit(glide[:24]), glide[:34], 24)[0].mean()
        for name in FRAME_EXTRAPOLATIONS
    }
    assert by_name["hold"] == pytest.approx(1)
    assert 5 * by_name["phase"] < by_name["gain"] < 0.95
    assert by_name["gain"] < by_name["linear"]


def test_a_rollout_moves_on_and_does_not_run_away(glide, fitted):
    rollout = fitted.predict(horizon=25)
    assert rollout.shape == (25, 48, 56)
    copied = np.mean((glide[39] - glide[40:44]) ** 2, axis=(1, 2))
    assert np.all(np.mean((rollout[:4] - glide[40:44]) ** 2, axis=(1, 2)) < 0.2 * copied)
    assert rollout.min() >= glide[:40].min() - 1e-3
    assert rollout.max() <= glide[:40].max() + 1e-3
    assert np.array_equal(rollout[0], fitted.predict())


def test_predicting_changes_nothing(glide, fitted):
    other = deepcopy(fitted)
    for frame in glide[40:45]:
        other.predict(horizon=3)
        other.predict()
        assert other.update(frame).predict().tobytes() == fitted.update(frame).predict().tobytes()


def test_what_is_predicted_later_is_what_was_known(glide, fitted):
    model = fitted
    wanted, later = model.predict(horizon=4), model.predict_later(4)
    for frame in glide[40:45]:
        model.update(frame)
    with ThreadPoolExecutor() as pool:
        assert pool.submit(later).result().tobytes() == wanted.tobytes()
    for use in (model.predict, model.predict_later):
        with pytest.raises(ValueError, match="horizon=0"):
            use(0)


def test_levels_may_be_in_any_range(glide):
    predicted = FramePredictor().fit(glide[:20]).predict()
    for scale, offset in ((1 / 255, 0.0), (3.0, -200.0)):
        # Training a network makes more of rounding: it stays far below the error.
        apart = FramePredictor().fit(scale * glide[:20] + offset).predict() - (scale * predicted + offset)
        assert np.mean(apart**2) < 0.01 * np.mean((scale * (predicted - glide[20])) ** 2)


def test_bytes_are_levels_too(glide):
    film = np.clip(glide, 0, 255).round().astype(np.uint8)
    predicted = FramePredictor().fit(film[:20]).predict()
    assert predicted.dtype == np.float32
    assert np.mean((predicted - film[20]) ** 2) < 0.05 * np.mean((film[19].astype(float) - film[20]) ** 2)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (16, 16), (17, 33), (8, 64)])
def test_any_size_of_frame(shape):
    film = np.random.default_rng(0).uniform(0, 255, (12, *shape))
    model = FramePredictor().fit(film[:10]).update(film[10])
    assert model.predict(horizon=2).shape == (2, *shape)
    assert np.isfinite(model.predict(horizon=2)).all()


def test_a_cut_is_noticed_and_the_new_scene_is_learned(glide, fitted):
    film = np.concatenate([glide[:45], gliding((-1.0, 0.5), 28, seed=5)])
    error, surprise, cut = ratios(fitted, film, 40)
    assert list(np.flatnonzero(cut)) == [5]
    assert surprise[5] > 10 * surprise[:5].max()
    # Copied while nothing is known, predicted as soon as one step is.
    assert error[6] == pytest.approx(1, abs=0.01)
    assert error[7:].max() < 0.9
    assert error[-10:].mean() < 0.1


@pytest.mark.slow
def test_a_fast_pan_is_no_cut():
    """The picture is as unlike the last one as after a cut, but motion explains it, and predicts the next."""
    wide = texture((64, 400), width=2.5)
    place = np.concatenate([np.arange(45), 44 + 12 * np.arange(1, 16)])
    film = np.array([wide[:, 20 + at : 84 + at] for at in place])
    error, surprise, cut = ratios(FramePredictor().fit(film[:40]), film, 40)
    assert surprise[5] > 6
    assert not cut.any()
    assert error[7:].max() < 0.9
    # A fifth of the picture is new in every frame, and cannot be known.
    assert error[-5:].mean() < 0.6


@pytest.mark.slow
def test_no_single_candidate_is_much_better(glide, fitted):
    """Regret, where the motion changes at once and nothing is cut."""
    film = np.concatenate([glide[:46], glide[45:25:-1]])
    own, single = 0.0, []
    for frame in film[40:]:
        own += float(np.mean((fitted.predict() - frame) ** 2))
        errors = fitted.update(frame).candidate_errors_
        single.append(list(errors.values()))
    assert "flow" in errors
    assert own < 1.02 * np.sum(single, axis=0).min()


def test_a_prior_helps_a_film_that_has_just_begun(glide):
    with_prior, without = (
        ratios(FramePredictor(prior=prior).fit(glide[:2]), glide[:12], 2)[0] for prior in ("default", None)
    )
    assert with_prior[:4].mean() < 0.6
    assert with_prior[:4].mean() < 0.8 * without[:4].mean()


def without(prior, *names):
    """A prior that does not know some of its candidates."""
    known = [k for k, name in enumerate(prior.names) if name not in names]
    return Prior(tuple(prior.names[k] for k in known), prior.gram[:, known][:, :, known], prior.match[:, known])


def test_a_candidate_that_a_prior_does_not_know_gets_no_weight_from_it(glide):
    names = Candidates((1, 1), PLANES).names
    whole = read_prior("default", names)
    assert whole.names == names
    short = without(whole, "flow, band 0", "mean 0.8")
    filled = read_prior(short, names)
    new = [names.index("flow, band 0"), names.index("mean 0.8")]
    old = [k for k in range(len(names)) if k not in new]
    for age in (1, 4, 20):
        assert not filled.weights_at(age)[new].any()
        # Up to the floor of energies, which is relative to the mean over all candidates.
        assert np.allclose(filled.weights_at(age)[old], short.weights_at(age), atol=1e-3)
    error, _, _ = ratios(FramePredictor(prior=short).fit(glide[:2]), glide[:12], 2)
    assert error[:4].mean() < 0.6


def test_a_candidate_is_added_in_one_place(tmp_path, glide, monkeypatch):
    """One more line: the default prior, the blend and files know it."""
    others = Candidates._others

    def with_one_more(self):
        yield from others(self)
        if self.rich:
            yield CandidateGroup(("half of the last change",), halved)

    def halved(scene, out):
        out[0] = 0.5 * (scene.current - scene.previous)

    monkeypatch.setattr(Candidates, "_others", with_one_more)
    model = FramePredictor().fit(glide[:20])
    assert model.get_state()["places.weights"][..., -1].any()
    model.save(tmp_path / "m.psmt")
    assert np.array_equal(FramePredictor.load(tmp_path / "m.psmt").predict(), model.predict())
    assert np.mean((model.predict() - glide[20]) ** 2) < 0.05 * np.mean((glide[19] - glide[20]) ** 2)


@pytest.mark.parametrize("name", ["one", ""])
def test_a_prior_of_other_candidates_is_refused(glide, name):
    other = Prior((name,), np.ones((6, 1, 1), np.float32), np.ones((6, 1), np.float32))
    with pytest.raises(ModelFileError, match=f"the prior .* 1 candidates, '{name}' among them"):
        FramePredictor(prior=other).fit(glide[:4])
    with pytest.raises(TypeError, match="prior"):
        FramePredictor(prior=3).fit(glide[:4])


@pytest.mark.slow
def test_the_expected_error_is_that_which_comes():
    film = gliding((0.6, -1.3), 150) + np.random.default_rng(0).normal(0, 8, (150, 48, 56))
    model, errors = FramePredictor().fit(film[:80]), []
    assert np.isnan(FramePredictor().fit(film[:10]).expected_mse(3)).all()
    for t in range(80, 140, 6):
        true = np.mean((model.predict(horizon=10) - film[t : t + 10]) ** 2, axis=(1, 2))
        errors.append((true, model.expected_mse(10)))
        for frame in film[t : t + 6]:
            model.update(frame)
    true, expected = np.mean(errors, axis=0)
    assert np.allclose(expected, true, rtol=0.3)
    assert model.expected_mse(12)[-1] == model.expected_mse(10)[-1]


@pytest.mark.slow
def test_without_rollouts_on_record_the_next_frame_is_the_same():
    film = gliding((0.6, -1.3), 60)
    kept, left = FramePredictor().fit(film[:8]), FramePredictor(rollouts=False).fit(film[:8])
    for frame in film[8:40]:
        assert np.array_equal(kept.update(frame).predict(), left.update(frame).predict())
    assert np.isfinite(kept.expected_mse(10)).all()
    assert np.isnan(left.expected_mse(10)).all()
    left.rollouts = True
    for frame in film[40:60]:
        left.update(frame)
    assert np.isfinite(left.expected_mse(10)).all()


def test_a_flash_passes(glide, fitted):
    film = glide.copy()
    film[45] += 100
    error, _, cut = ratios(fitted, film, 40)
    assert list(np.flatnonzero(cut)) == [5, 6]
    assert error[-5:].mean() < 0.1


def test_a_stutter_is_no_cut(glide, fitted):
    film = np.concatenate([glide[:45], glide[44:45], glide[44:45], glide[45:]])
    _, surprise, cut = ratios(fitted, film, 40)
    assert not cut.any()
    assert np.isfinite(surprise).all()


def test_what_was_given_may_be_overwritten(glide):
    model, other = FramePredictor().fit(glide[:8]), FramePredictor()
    given = glide[:8].astype(np.float32)
    other.fit(given)
    given[:] = 0
    frame = glide[8].astype(np.float32)
    other.update(frame)
    frame[:] = 0
    assert other.predict().tobytes() == model.update(glide[8]).predict().tobytes()


@pytest.mark.parametrize(
    ("extrapolation", "n_frames"),
    [
        ("phase", 20),
        *((name, 46) for name in ("gain", "linear", "hold")),
        *(pytest.param("phase", n_frames, marks=pytest.mark.slow) for n_frames in (2, 46)),
    ],
)
def test_a_loaded_model_goes_on_bit_for_bit(tmp_path, glide, extrapolation, n_frames):
    """After the first change, in the middle of a scene, and right after a cut, which those who copy do not notice."""
    film = np.concatenate([glide[:45], gliding((-1.0, 0.5), 15, seed=5)])
    model = FramePredictor(extrapolation=extrapolation).fit(film[:n_frames])
    assert model.cut_ == (n_frames == 46 and extrapolation != "hold")
    model.save(tmp_path / "m.psmt")
    loaded = FramePredictor.load(tmp_path / "m.psmt")
    assert loaded.extrapolation == model.extrapolation
    for frame in film[n_frames : n_frames + 4]:
        assert loaded.predict(horizon=2).tobytes() == model.predict(horizon=2).tobytes()
        assert (loaded.surprise_, loaded.cut_) == (model.surprise_, model.cut_)
        loaded.update(frame)
        model.update(frame)


def test_saving_and_giving_the_state_change_nothing(tmp_path, glide, fitted):
    model, other = fitted, deepcopy(fitted)
    state = other.get_state()
    kept = {key: value.copy() for key, value in state.items()}
    other.save(tmp_path / "m.psmt")
    for frame in glide[40:44]:
        assert model.update(frame).predict().tobytes() == other.update(frame).predict().tobytes()
    # Neither the model that goes on nor the one that takes over writes into the state.
    third = FramePredictor().set_state(state)
    for frame in glide[40:44]:
        third.update(frame)
    assert third.predict().tobytes() == model.predict().tobytes()
    assert all(np.array_equal(state[key], kept[key]) for key in kept)


@pytest.mark.slow
def test_nothing_depends_on_the_number_of_threads_nor_on_who_comes_first(glide, monkeypatch):
    from psmt.engines.numba import fan_out

    def outcome(n_threads):
        monkeypatch.setattr(fan_out, "get_num_threads", lambda: n_threads)
        model = FramePredictor().fit(glide[:26])
        assert model._learner.rollout is not None  # one is under way
        return {"ahead": model.predict(horizon=3), **model.get_state()}

    alone = outcome(1)
    for _ in range(2):
        together = outcome(3)
        assert all(np.array_equal(alone[name], together[name]) for name in alone)


def test_what_is_no_saved_model_is_refused(tmp_path, fitted):
    path = tmp_path / "m.psmt"
    fitted.save(path)
    with pytest.raises(ModelFileError, match=r"holds a FramePredictor, not a PSMT; use FramePredictor.load"):
        PSMT.load(path)
    with np.load(path) as archive:
        parts = dict(archive)
    for changed, message in (
        ({"trust.energy": np.zeros((3, 3), np.float32)}, "trust.energy is float32"),
        ({"current": np.full((48, 56), np.nan, np.float32)}, "current .* finite"),
    ):
        with path.open("wb") as file:
            np.savez(file, **parts | changed)
        with pytest.raises(ModelFileError, match=f"m.psmt is damaged.*{message}"):
            FramePredictor.load(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelFileError, match="is not a saved model, or is damaged"):
        FramePredictor.load(path)


@pytest.mark.parametrize(
    ("frames", "error", "message"),
    [
        (np.zeros((4, 8, 8, 4)), ValueError, r"frames has shape \(4, 8, 8, 4\)"),
        (np.zeros((8, 8)), ValueError, r"frames has shape \(8, 8\)"),
        (np.zeros((4, 0, 8)), ValueError, r"give grey levels \(time, height, width\)"),
        (np.zeros((4, 8, 8), complex), ValueError, "dtype complex128"),
        (np.full((4, 8, 8), np.nan), ValueError, "NaN or infinite"),
        (np.zeros((1, 8, 8)), NotEnoughFramesError, "frames has 1 frames; at least 2 are needed"),
    ],
)
def test_what_is_no_film_is_refused(frames, error, message):
    with pytest.raises(error, match=message):
        FramePredictor().fit(frames)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (np.zeros((48, 55)), r"frame has shape \(48, 55\); the model was fitted with frames of \(48, 56\)"),
        (np.zeros((48, 56, 3)), r"frame has shape \(48, 56, 3\); the model was fitted with frames of \(48, 56\)"),
        (np.full((48, 56), np.inf), "NaN or infinite"),
    ],
)
def test_what_is_no_frame_is_refused_and_leaves_no_trace(fitted, frame, message):
    before = fitted.predict()
    with pytest.raises(ValueError, match=message):
        fitted.update(frame)
    assert np.array_equal(fitted.predict(), before)


def test_an_unknown_extrapolation_is_refused_with_the_names_that_this_model_knows(glide, monkeypatch):
    monkeypatch.setitem(psmt.extrapolation.EXTRAPOLATIONS, "cubic", psmt.extrapolation.Linear)
    with pytest.raises(
        ValueError, match="extrapolation='cubic' is unknown; use one of 'phase', 'gain', 'linear', 'hold'"
    ):
        FramePredictor(extrapolation="cubic").fit(glide[:4])


def test_an_unfitted_model_says_so(glide):
    for use in (lambda m: m.predict(), lambda m: m.update(glide[0]), lambda m: m.surprise_, lambda m: m.dictionary_):
        with pytest.raises((NotFittedError, AttributeError)):
            use(FramePredictor())


@dataclass(frozen=True, kw_only=True)
class FailingStream(FrameStream):
    """Frames that are made one at a time, of which each is known as long as somebody holds it."""

    n_good: int
    alive: list[weakref.ref] = field(default_factory=list)

    def _read(self, *, colour):
        for t in range(self.n_good):
            frame = (texture() + t).astype(np.float32)
            self.alive[:] = [one for one in self.alive if one() is not None]
            self.alive.append(weakref.ref(frame))
            yield frame
        raise FrameSourceError("the film breaks off")


def test_a_film_is_learned_from_as_it_is_read_and_not_held():
    """No frame but the last few is kept, whatever the film says of its length; and what is learned is the same."""
    film = gliding((0.6, -1.3), 12).astype(np.float32)
    model, other = FramePredictor().fit(open_frames(film)), FramePredictor().fit(film)
    assert np.array_equal(model.predict(), other.predict())
    failing = FailingStream(name="failing", shape=(48, 56), n_frames=10**15, n_good=20)
    with pytest.raises(FrameSourceError, match="breaks off"):
        model.fit(failing)
    assert len(failing.alive) < 8
    # And the model is what it was.
    assert np.array_equal(model.predict(), other.predict())
    with pytest.raises(NotEnoughFramesError, match="frames has 1 frames; at least 2 are needed"):
        model.fit(open_frames(film[:1]))
    assert np.array_equal(model.update(film[0]).predict(), other.update(film[0]).predict())


def test_a_model_of_an_old_version_is_refused_with_a_sentence():
    """Before, the moments of a cell had a single memory: an axis less."""
    model = FramePredictor().fit(gliding((1, 0), 4))
    header, state = model.get_header(), model.get_state()
    FramePredictor.stored_schema(header, state)
    with pytest.raises(ModelFileError, match=r"old psmt.*fit the model again"):
        FramePredictor.stored_schema(header, state | {"places.gram": state["places.gram"][0]})
