"""'auto': chosen by walk-forward error, from the past alone."""

import numpy as np
import pytest

from psmt import PSMT, SparseCoder
from psmt.embedding import solve_closed_form
from psmt.embedding.moments import WindowMoments
from psmt.extrapolation import Linear
from psmt.recovery import Recovery, recover_next
from psmt.selection import LAMBDAS, component_candidates, held_out, walk_forward


@pytest.fixture(scope="module")
def film(glide):
    """A film of a rank that leaves several sizes to choose from."""
    return glide[150:]


def auto(**parameters):
    return PSMT(**{"n_atoms": 32, "window": 64, "alpha": 0.3, "random_state": 0} | parameters)


def codes_and_dictionary(film):
    coder = SparseCoder(n_atoms=32, alpha=0.3, random_state=0).fit(film[:100])
    return coder.transform(film[:64]), coder.dictionary_


def walk(codes, dictionary, **given):
    return walk_forward(
        codes, dictionary, Linear(), **{"n_components": "auto", "lam": "auto", "rank_tol": 1e-6} | given
    )


def test_candidates():
    assert component_candidates(100) == [16, 32, 64, None]
    assert component_candidates(16) == [None]
    assert held_out(64) == 8
    assert held_out(3) == 1


def test_the_table_is_complete_and_its_least_is_chosen(engine, film):
    choice = auto(device=engine.device).fit(film[:200]).choice_
    sizes = {f for f, _ in choice.scores}
    assert sizes == {16, None}
    assert set(choice.scores) == {(f, lam) for f in sizes for lam in LAMBDAS}
    assert all(np.isfinite(score) and score > 0 for score in choice.scores.values())
    assert choice.scores[choice.n_components, choice.lam] == min(choice.scores.values())


def test_scores_are_walk_forward_errors(engine, film):
    codes, dictionary = codes_and_dictionary(film)
    scores = walk(codes, dictionary, device=engine.device).scores
    for f, lam in ((None, 0.03), (16, 0.3)):
        errors = []
        for t in range(56, 64):
            moments = WindowMoments.of(codes[:t])
            P = solve_closed_form(
                moments.covariance(), moments.second_differences(), n_codes=len(moments), rank_tol=1e-6
            ).matrix[:f]
            recover = Recovery(P, lam, activity=2 * codes[:t].sum(axis=1).max())
            code = recover_next(recover, Linear(), codes[t - 2], codes[t - 1])
            errors.append(np.mean(((code - codes[t]) @ dictionary) ** 2))
        assert scores[f, lam] == pytest.approx(np.mean(errors), rel=1e-6)


def test_an_embedding_serves_four_predictions_of_a_long_window():
    codes = np.abs(np.random.default_rng(0).standard_normal((120, 6)))
    score = walk(codes, np.eye(6), n_components=4).scores[4, 0.1]
    errors = []
    for t in range(105, 120, 2):
        moments = WindowMoments.of(codes[: 105 + (t - 105) // 8 * 8])
        P = solve_closed_form(moments.covariance(), moments.second_differences(), n_codes=len(moments), rank_tol=1e-6)
        recover = Recovery(P.matrix[:4], 0.1, activity=2 * moments.peak_activity)
        errors.append(np.mean((recover_next(recover, Linear(), codes[t - 2], codes[t - 1]) - codes[t]) ** 2))
    assert score == pytest.approx(np.mean(errors), rel=1e-6)


def test_the_first_predictions_do_not_know_the_last_codes(film):
    """With everything but the last code alike, only the last prediction's error differs."""
    codes, dictionary = codes_and_dictionary(film)
    other = codes.copy()
    other[-1] = 0.0
    ours, theirs = walk(codes, dictionary).scores, walk(other, dictionary).scores
    moments = WindowMoments.of(codes[:-1])
    P = solve_closed_form(
        moments.covariance(), moments.second_differences(), n_codes=len(moments), rank_tol=1e-6
    ).matrix
    recover = Recovery(P, 0.1, activity=2 * moments.peak_activity)
    last = recover_next(recover, Linear(), codes[-3], codes[-2])
    change = np.mean(((last - codes[-1]) @ dictionary) ** 2) - np.mean((last @ dictionary) ** 2)
    assert 8 * (ours[None, 0.1] - theirs[None, 0.1]) == pytest.approx(change, rel=1e-6)


def test_the_choice_goes_with_the_model(engine, film):
    model = auto(device=engine.device).fit(film[:200])
    assert (model.n_components_, model.lam_) == (model.choice_.n_components, model.choice_.lam)
    chosen = {"n_components": model.n_components_, "lam": model.lam_, "coder": model.coder_}
    given = auto(device=engine.device, **chosen).fit(film[:200])
    assert given.choice_.scores == {}
    assert np.allclose(given.predict(), model.predict(), atol=1e-9)


@pytest.mark.parametrize("given", [{"n_components": 5}, {"n_components": None}, {"lam": 0.2}])
def test_what_is_given_is_not_varied(engine, film, given):
    model = auto(device=engine.device, **given).fit(film[:200])
    (name, value), *_ = given.items()
    assert getattr(model, name + "_") == value
    assert {key[name == "lam"] for key in model.choice_.scores} == {value}
    assert len(model.choice_.scores) > 1


def test_held_out_frames_are_new_to_the_dictionary(film, monkeypatch):
    """They are learned from after the choice, by another coder than the one that made the scored codes."""
    seen, walked = [], []

    def record(kind, name, notes):
        whole = getattr(kind, name)

        def recording(self, X, **given):
            notes.append((name, np.array(X)))
            return whole(self, X, **given)

        monkeypatch.setattr(kind, name, recording)

    def walking(codes, dictionary, *given, **options):
        walked.append((len(seen), dictionary))
        return walk_forward(codes, dictionary, *given, **options)

    record(SparseCoder, "fit", seen)
    record(SparseCoder, "fit_further", seen)
    monkeypatch.setattr("psmt.model.fitting.walk_forward", walking)
    model = auto().fit(film[:200])
    (first, before), (second, after) = seen
    assert (first, second) == ("fit", "fit_further")
    assert np.array_equal(before, film[: 200 - held_out(64)])
    assert np.array_equal(after, film[200 - held_out(64) : 200])
    ((n_seen, dictionary),) = walked
    assert n_seen == 1
    assert not np.array_equal(dictionary, model.dictionary_)


def test_the_dictionary_of_an_automatic_fit_serves_as_well_as_one_learned_at_once(film):
    """On the whole past and on the frames that were held out, to a few hundredths of the objective."""
    ours = auto().fit(film[:200]).coder_
    at_once = SparseCoder(n_atoms=32, alpha=0.3, random_state=0).fit(film[:200])

    def objective(coder, frames):
        codes = coder.transform(frames)
        return 0.5 * np.sum((frames - coder.inverse_transform(codes)) ** 2) + 0.3 * codes.sum()

    for frames in (film[:200], film[192:200]):
        assert objective(ours, frames) < 1.1 * objective(at_once, frames)


def test_gain_looks_back_even_when_all_is_given(engine, film):
    model = auto(device=engine.device, n_components=5, lam=0.1, extrapolation="gain").fit(film[:200])
    assert model._extrapolation.get_state()["common"][1] > 0, "it has seen steps before the first update"
    assert (model.n_components_, model.lam_) == (5, 0.1)


def test_a_still_window_can_be_walked_too(engine, film):
    model = auto(device=engine.device).fit(np.vstack([film[:100], np.tile(film[100], (80, 1))]))
    assert model.embedding_.shape == (0, 32)
    assert np.allclose(model.update(film[100]).predict(), model.codes_[-1] @ model.dictionary_)
