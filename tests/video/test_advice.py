"""Experts, rollouts on record, and what other films teach."""

import weakref

import numpy as np
import pytest

from psmt.engines import engine_for
from psmt.errors import ModelFileError, NotEnoughFramesError
from psmt.video import Prior, learn_prior
from psmt.video.candidates import PLANES, Candidates
from psmt.video.cells import Grid
from psmt.video.experts import ExpertWeights
from psmt.video.rollouts import LEADS, RolloutRecord

KERNELS = engine_for("cpu").frames


def test_the_average_follows_the_best_expert_soon_after_it_changes():
    """Regret: the loss of the average is within 2% of that of the best expert in each half."""
    rng = np.random.default_rng(0)
    advice, losses = ExpertWeights(KERNELS, (3,)), []
    for t in range(200):
        truth = rng.standard_normal(500)
        noise = np.array([0.3, 1.0, 1.5] if t < 100 else [1.0, 0.3, 1.5])[:, None]
        experts = truth + noise * rng.standard_normal((3, 500))
        losses.append([np.mean((advice.weights() @ experts - truth) ** 2), *np.mean((experts - truth) ** 2, axis=1)])
        advice.learn(np.array(losses[-1][1:]))
    own, *single = np.array(losses).T
    assert own[10:100].sum() < 1.02 * single[0][10:100].sum()
    assert own[110:].sum() < 1.02 * single[1][110:].sum()
    # Over both halves no single expert is half as good: none can follow the change.
    assert own.sum() < 0.5 * np.sum(single, axis=1).min()


def test_experts_that_know_nothing_of_each_other_start_equal():
    advice = ExpertWeights(KERNELS, (4,))
    assert np.allclose(advice.weights(), 0.25)
    advice.learn(np.array([0.0, 1.0, 1.0, 1.0]))
    assert advice.weights()[0] > 0.99
    advice.clear()
    assert np.allclose(advice.weights(), 0.25)


def walk_forward(pairs, score, skip):
    """Mean scores of a record before it learns from pairs of a rollout and the true frames; `skip` the first ones."""
    record, still, scores = RolloutRecord(Grid((32, 32)), 1), np.zeros((32, 32), np.float32), []
    for rolled, came in pairs:
        record.add_energy(1.0)
        scores.append(score(record, np.array(record.mixed(list(rolled), still, still[None])), rolled, came))
        record.begin(rolled[0], still, still[None])
        assert [record.add(frame) for frame in rolled[1:]] == [False] * (LEADS - 2) + [True]
        for frame in came:
            record.learn(frame)
    return np.array(scores)[skip:].mean(axis=0)


def rollouts(qualities):
    """Pairs of rollouts (LEADS, 32, 32), a share `quality` of which is true and the rest noise, and of the truth."""
    rng = np.random.default_rng(0)
    for quality in qualities:
        truth, noise = rng.standard_normal((2, LEADS, 32, 32)).astype(np.float32)
        yield quality * truth + (1 - quality) * noise, truth


def errors_and_expected(record, mixed, _rolled, came):
    return np.mean((mixed - came) ** 2, axis=(1, 2)), record.expected(LEADS)


def test_a_rollout_that_is_noise_is_not_used():
    error, _ = walk_forward(rollouts([0.0] * 40), errors_and_expected, skip=16)
    assert error[0] == pytest.approx(2, rel=0.05)  # one frame ahead is left to the gains
    assert np.all(error[1:] < 1.1)


def test_a_rollout_that_is_right_is_used_and_its_error_expected():
    error, expected = walk_forward(rollouts([0.8] * 40), errors_and_expected, skip=16)
    assert np.all(error[1:] < 0.1)
    assert np.allclose(expected, error, rtol=0.2)


def test_the_average_of_experts_is_no_worse_than_any_of_them():
    """Rollouts that are right or noise by turns: no expert is best each time."""

    def score(record, mixed, rolled, came):
        still = np.zeros((32, 32), np.float32)
        every = (mixed[5], *record._experts(5, rolled[5], still, still[None]))
        return [np.mean((one - came[5]) ** 2) for one in every]

    own, *experts = walk_forward(rollouts([0.9, 0.1] * 12), score, skip=4)
    assert own < 1.02 * min(experts)


def test_detail_that_a_rollout_makes_up_is_left_out():
    rng = np.random.default_rng(0)
    coarse = [np.kron(rng.standard_normal((LEADS, 4, 4)), np.ones((8, 8))).astype(np.float32) for _ in range(12)]
    pairs = ((came + rng.standard_normal(came.shape).astype(np.float32), came) for came in coarse)

    def score(_record, mixed, rolled, came):
        return [np.mean((one[1:] - came[1:]) ** 2) for one in (mixed, rolled)]

    # Weights by cell alone could only weaken the whole: to half of its error.
    own, rolled = walk_forward(pairs, score, skip=4)
    assert own < 0.3 * rolled


@pytest.fixture(scope="module")
def taught():
    rng = np.random.default_rng(0)
    film = np.cumsum(rng.standard_normal((20, 24, 24)), axis=0).astype(np.float32)
    return learn_prior([film])


def test_a_prior_is_kept_as_it_is(tmp_path, taught):
    taught.save(tmp_path / "p.psmt")
    loaded = Prior.load(tmp_path / "p.psmt")
    assert loaded.names == taught.names == Candidates((24, 24), PLANES).names
    assert np.array_equal(loaded.gram, taught.gram)
    assert np.array_equal(loaded.match, taught.match)


def test_a_damaged_prior_is_refused(tmp_path, taught):
    path = tmp_path / "p.psmt"
    taught.save(path)
    with np.load(path) as archive:
        parts = dict(archive)
    with path.open("wb") as file:
        np.savez(file, **parts | {"match": np.zeros((2, 2), np.float32)})
    with pytest.raises(ModelFileError, match=r"p.psmt is damaged.*match is float32 \(2, 2\), not float32 \(6,"):
        Prior.load(path)


@pytest.mark.parametrize("n_frames", [3, 16, 17, 40])
def test_a_film_that_comes_frame_by_frame_teaches_the_same_and_is_not_held(n_frames):
    film = np.cumsum(np.random.default_rng(1).standard_normal((n_frames, 24, 24)), axis=0).astype(np.float32)
    alive = weakref.WeakSet()
    most = 0

    def frames():
        nonlocal most
        for frame in film:
            held = _Frame(frame)
            alive.add(held)
            most = max(most, len(alive))
            yield held
            del held

    held, taught = learn_prior([film]), learn_prior([frames()])
    assert np.array_equal(held.gram, taught.gram)
    assert np.array_equal(held.match, taught.match)
    assert most <= 34  # two snippets, the one before and the one that is read


class _Frame(np.ndarray):
    """A frame that a WeakSet can hold."""

    __hash__ = object.__hash__

    def __new__(cls, frame):
        return frame.copy().view(cls)


def test_a_film_too_short_to_learn_from_is_refused():
    with pytest.raises(NotEnoughFramesError, match="2 frames; at least 3"):
        learn_prior([iter(np.zeros((2, 24, 24), np.float32))])


def test_there_must_be_a_film():
    with pytest.raises(ValueError, match="no films to learn from"):
        learn_prior([])
