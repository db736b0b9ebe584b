"""Baselines on films whose next frame is known."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from psmt import open_frames
from psmt.errors import NotEnoughFramesError
from psmt.video.baselines import FRAME_BASELINES, BlockMotion, CopyLastFrame, FourierPhase, LinearPixels, RidgePixels
from video.conftest import gliding, waves

ALL = [CopyLastFrame(), LinearPixels(), FourierPhase(), BlockMotion(), RidgePixels(tile=20)]
NAMES = [type(baseline).__name__ for baseline in ALL]
each = pytest.mark.parametrize("baseline", ALL, ids=NAMES)
INSIDE = (slice(12, -12), slice(12, -12))


def moving(down, right, n_frames=8):
    """A texture (n_frames, 48, 56) that moves by (down, right) pixels per frame, round and round."""
    return gliding((down, right), n_frames, waves()).astype(np.float32)


def error(predicted, truth, where=INSIDE):
    return float(np.mean((predicted[where] - truth[where]) ** 2))


def against_copying(baseline, film, where=INSIDE):
    predicted = clone(baseline).fit(film[:-2]).update(film[-2]).predict()
    return error(predicted, film[-1], where) / error(film[-2], film[-1], where)


@each
def test_a_film_that_stands_still_stays(baseline):
    film = moving(0, 0)
    # A source is read as a whole.
    for past in (film[:6], open_frames(film[:6])):
        np.testing.assert_allclose(clone(baseline).fit(past).update(film[6]).predict(), film[7], atol=1e-5)


@each
def test_rollout_goes_on_from_its_own_predictions_and_leaves_the_state_alone(baseline):
    film = moving(1, 0.5)
    alone = clone(baseline).fit(film)
    rolled = alone.predict(horizon=3)
    assert rolled.shape == (3, 48, 56)
    fed = clone(baseline).fit(film)
    for frame in rolled:
        np.testing.assert_allclose(fed.predict(), frame, atol=1e-6)
        fed.update(frame)
    np.testing.assert_array_equal(alone.predict(horizon=3), rolled)


@each
def test_update_is_as_good_as_having_been_there(baseline):
    film = moving(1, 2)
    baseline = clone(baseline).fit(film[:6])
    state = baseline.update(film[6]).update(film[7]).predict()
    if not isinstance(baseline, RidgePixels):  # which learns from what it is fitted to
        np.testing.assert_allclose(state, clone(baseline).fit(film).predict(), atol=1e-6)
    np.testing.assert_array_equal(film, moving(1, 2))


@each
def test_what_took_over_a_state_goes_on_alike(baseline):
    film = moving(1, 2)
    first = clone(baseline).fit(film[:6])
    second = clone(baseline).set_state(first.get_state())
    for frame in film[6:]:
        np.testing.assert_array_equal(second.update(frame).predict(horizon=2), first.update(frame).predict(horizon=2))


def test_everyone_is_in_the_list():
    assert {entry.make for entry in FRAME_BASELINES.values()} == {type(baseline) for baseline in ALL}
    assert [name for name, entry in FRAME_BASELINES.items() if entry.slow] == ["blocks", "ridge"]


def test_copying_and_straight_lines_are_what_they_say():
    film = moving(1, 2)
    np.testing.assert_array_equal(CopyLastFrame().fit(film).predict(), film[-1])
    np.testing.assert_allclose(LinearPixels().fit(film).predict(), 2 * film[-1] - film[-2], atol=1e-6)


@pytest.mark.parametrize("motion", [(1, 0), (0, -1), (0.5, 0.75), (-1.5, 0.5)])
@pytest.mark.parametrize(
    "baseline", [FourierPhase(), BlockMotion(), RidgePixels(tile=28)], ids=["fourier", "blocks", "ridge"]
)
def test_steady_motion_is_foreseen(baseline, motion):
    assert against_copying(baseline, moving(*motion, n_frames=20)) < 0.15


def test_straight_lines_in_pixels_lose_to_copying_where_detail_moves_fast():
    assert against_copying(LinearPixels(), moving(4, 3)) > 1


def test_fourier_windows_add_up_to_the_frame():
    # At odd sizes too: every pixel, borders included, comes back where nothing turns.
    frame = moving(0, 0)[0][:45, :50]
    np.testing.assert_allclose(FourierPhase().fit(np.stack([frame, frame])).predict(), frame, atol=1e-6)


def test_fourier_turns_each_coefficient_by_its_last_step():
    # A wave that every window sees whole cycles of turns by the same angle in each of them.
    x = np.arange(64)
    film = np.array([np.tile(np.cos(2 * np.pi * x / 8 - 0.4 * t), (64, 1)) for t in range(3)])
    predicted = FourierPhase().fit(film[:2]).predict()
    np.testing.assert_allclose(predicted[INSIDE], film[2][INSIDE], atol=0.03)


def test_blocks_move_by_whole_pixels_exactly_and_no_farther_than_their_reach():
    film = moving(3, -2)
    middle = (slice(20, -20), slice(20, -20))  # no block that what comes in over the edge confuses
    assert against_copying(BlockMotion(reach=4), film, middle) < 1e-6
    assert against_copying(BlockMotion(reach=1), film, middle) > 0.2


def test_ridge_learns_the_map_that_made_the_film():
    # Each pixel becomes a mixture of itself and its right neighbour: a linear map of the neighbourhood.
    film = [np.random.default_rng(0).standard_normal((24, 24))]
    for _ in range(8):
        film.append(0.6 * film[-1] + 0.4 * np.roll(film[-1], -1, axis=1))
    ridge = RidgePixels(radius=1, tile=24, penalty=1e-9).fit(film[:-1])
    # The last column has no right neighbour in the frame.
    np.testing.assert_allclose(ridge.predict()[:, :-1], film[-1][:, :-1], atol=0.02)


def test_ridge_with_auto_takes_the_penalty_that_foresees_the_end_of_the_past():
    noise = np.random.default_rng(1).standard_normal((9, 20, 20))
    assert RidgePixels(radius=2, tile=5).fit(noise).penalty_ == max(RidgePixels._PENALTIES)


@each
def test_bad_input_is_named(baseline):
    film = moving(1, 0)
    with pytest.raises(NotFittedError):
        clone(baseline).predict()
    with pytest.raises(ValueError, match=r"\(time, height, width\)"):
        clone(baseline).fit(film[0])
    with pytest.raises(ValueError, match="NaN"):
        clone(baseline).fit(np.where(film > 0.5, np.nan, film))
    fitted = clone(baseline).fit(film)
    with pytest.raises(ValueError, match="fitted with frames of"):
        fitted.update(film[0][:20])
    with pytest.raises(ValueError, match="horizon"):
        fitted.predict(horizon=0)
    if not isinstance(baseline, CopyLastFrame):
        with pytest.raises(NotEnoughFramesError, match="at least"):
            clone(baseline).fit(film[:1])
