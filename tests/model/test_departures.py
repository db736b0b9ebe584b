"""The paper to the letter, and each departure from it: alone, and where it is active."""

from dataclasses import fields

import numpy as np
import pytest

from oracles.literal import algorithm_1
from oracles.solvers import lars_codes, recover_change, recover_code
from psmt import PSMT, SparseCoder
from psmt.model.baselines import Baseline1, Baseline2, CopyCode
from psmt.model.paper_options import OURS, Departures
from psmt.recovery import pose_columns, pose_columns_masked

LITERAL = Departures.literal()


def run(model, past, delayed):
    """Predictions (time, n_features) after each of the delayed frames."""
    model.fit(past)
    return np.array([model.update(x).predict() for x in delayed])


@pytest.mark.parametrize(("M", "H", "f"), [(24, 150, 4), (32, 120, 32)])
def test_the_letter_is_algorithm_1(engine, glide, M, H, f):
    past, delayed = glide[:380], glide[380:386]
    given = {"n_atoms": M, "alpha": 0.3, "random_state": 0}
    model = PSMT.literal(**given, window=H, n_components=f, lam=0.1, device=engine.device)
    predicted = run(model, past, delayed)
    of_window, of_past = (SparseCoder(**given).fit(frames).dictionary_ for frames in (past[-H:], past))
    assert np.allclose(model.dictionary_, of_window, atol=1e-6)
    assert not np.allclose(model.dictionary_, of_past, atol=1e-3)
    A = lars_codes(past[-H:], model.dictionary_, 0.3).T
    expected, _ = algorithm_1(model.dictionary_.T, A, delayed, H=H, f=f, alpha=0.3, lam=0.1, full=True)
    assert np.abs(predicted - expected).max() < 1e-6


def flash():
    """A film (200, 16) and its coder: eight atoms glide, eight flicker faintly and rarely, and one frame flashes.

    To explain what comes after the flash, the recovery reaches for atoms that P hardly shows.
    """
    rng, n = np.random.default_rng(15), 200
    t = np.arange(n)[:, None]
    glide = np.maximum(np.cos(t / (7 + np.arange(8)) + np.arange(8)), 0)
    flicker = 0.03 * (rng.random((n, 8)) < 0.05) * rng.random((n, 8))
    codes = np.hstack([glide, flicker]) + 1e-3 * (1 + rng.random((n, 16)))
    codes[160, 15] += 3.0
    atoms = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    return codes @ atoms, SparseCoder.from_dictionary(atoms, alpha=1e-3)


def still():
    """A film (200, 16) and its coder: as `flash`, but gliding stops for eighty frames, and nothing flashes.

    While it stands still, V is hardly determined.
    """
    rng, n = np.random.default_rng(0), 200
    position = np.cumsum((np.arange(n) <= 100) | (np.arange(n) >= 180))[:, None]
    glide = np.maximum(1 + np.cos(position / (7 + np.arange(8)) + np.arange(8)), 0)
    flicker = 0.1 * (rng.random((n, 8)) < 0.02) * rng.random((n, 8))
    codes = np.hstack([glide, flicker]) + 1e-3 * (1 + rng.random((n, 16)))
    atoms = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    return codes @ atoms, SparseCoder.from_dictionary(atoms, alpha=1e-3)


@pytest.mark.parametrize(
    ("film", "H", "start", "f", "active"),
    [
        (flash, 60, 158, 8, {"half_stencils", "centred", "rank_tol", "activity_bound"}),
        (flash, 60, 158, 4, {"half_stencils", "centred", "rank_tol", "activity_bound"}),
        (still, 100, 170, 3, {"half_stencils", "centred", "rank_tol"}),
    ],
)
def test_the_letter_where_departures_are_active(engine, film, H, start, f, active):
    X, coder = film()
    past, delayed = X[:start], X[start : start + 7]
    A = np.maximum(coder.dictionary_ @ past.T - 1e-3, 0.0)  # codes over orthonormal atoms
    given = {"H": H, "f": f, "alpha": 1e-3, "lam": 0.01, "full": True, "least": 1e-8}
    expected, _ = algorithm_1(coder.dictionary_.T, A, delayed, **given)
    own = {"window": H, "n_components": f, "lam": 0.01, "coder": coder, "device": engine.device}
    assert np.abs(run(PSMT.literal(**own), past, delayed) - expected).max() < 1e-6
    if engine.device != "cpu":
        return  # what a departure does to a window is no question of the engine
    others = {"half_stencils": False, "centred": False, "rank_tol": 1e-6, "activity_bound": 2.0, "merge_parallel": True}
    moved = {
        name
        for name, value in others.items()
        if np.abs(run(PSMT.literal(**own, **{name: value}), past, delayed) - expected).max() > 1e-3
    }
    assert moved == active


# Parallel columns


def nearly_parallel():
    """P (3, 9): two of its columns are closer than what is merged, though not parallel, and one is zero."""
    rng = np.random.default_rng(0)
    P = rng.standard_normal((3, 9))
    P[:, 5] = 1.7 * (P[:, 2] + 3e-4 * rng.standard_normal(3))
    P[:, 7] = 0.0
    return P


@pytest.mark.parametrize("merge_parallel", [True, False])
def test_columns_are_merged_only_if_asked(operations, merge_parallel):
    P, rng = nearly_parallel(), np.random.default_rng(1)
    recover = operations.recovery(P, 0.02, merge_parallel=merge_parallel)
    shown = P.any(axis=0)
    agree, apart = [], []
    for _ in range(10):
        code = rng.random(9) * (rng.random(9) < 0.4) + np.eye(9)[2]
        found, expected = recover(P @ code, code), recover_code(P, P @ code, 0.02)
        agree.append(np.allclose(found[shown], expected[shown], atol=1e-6))
        apart.append(found[5] * np.linalg.norm(P[:, 2]) - found[2] * np.linalg.norm(P[:, 5]))
    assert all(agree) is not merge_parallel
    assert np.allclose(apart, 0.0) is merge_parallel


def test_changes_without_merging(operations):
    P, rng = nearly_parallel(), np.random.default_rng(2)
    recover = operations.recovery(P, 0.02, merge_parallel=False)
    for _ in range(10):
        shift = rng.standard_normal(3)
        assert np.allclose(recover.change(shift, np.zeros(9)), recover_change(P, shift, 0.02), atol=1e-6)


@pytest.mark.parametrize("n", [1, 40])
def test_columns_in_one_proportion_are_an_optimum_of_the_paper_either_way(operations, n):
    """One by one and many at once: the problem does not say which of them to use, but what they do together."""
    rng = np.random.default_rng(3)
    P = rng.standard_normal((4, 10))
    P[:, 6], P[:, 8] = 2.0 * P[:, 1], 0.5 * P[:, 1]
    codes = rng.random((n, 10)) * (rng.random((n, 10)) < 0.6)
    points, z = codes @ P.T, np.linalg.norm(P, axis=0)

    def cost(found):
        return ((found @ P.T - points) ** 2).sum(axis=1) + 0.02 * found @ z

    merged, alone = (operations.recovery(P, 0.02, merge_parallel=merge).many(points, codes) for merge in (True, False))
    expected = np.array([recover_code(P, point, 0.02) for point in points])
    assert np.allclose(cost(merged), cost(expected), atol=1e-9)
    assert np.allclose(cost(alone), cost(expected), atol=1e-9)
    assert np.allclose(merged[:, 6], 2.0 * merged[:, 1])


def test_masked_columns_are_the_plain_ones_without_merging(engine):
    P = engine.array(nearly_parallel())
    plain, masked = (pose(P, merge_parallel=False) for pose in (pose_columns, pose_columns_masked))
    shown = engine.numpy(plain.shown)
    assert len(plain.columns) == 8 == shown.sum()
    assert np.array_equal(engine.numpy(masked.columns)[shown], engine.numpy(plain.columns))
    assert np.array_equal(engine.numpy(masked.group), np.arange(9))
    for name in ("shown", "share"):
        assert np.array_equal(engine.numpy(getattr(masked, name)), engine.numpy(getattr(plain, name)))


# One parameter, one thing


def learned_from(dictionary_from, film):
    """The coder of a model whose past is the film (n, n_features), and that of its walk-forward."""
    seen = []

    class Watched(PSMT):
        def fit_coder(self, samples, learned=None, **options):
            seen.append(super().fit_coder(samples, learned, **options))
            return seen[-1]

    given = {"n_atoms": 10, "window": 60, "n_components": 4, "alpha": 0.1, "random_state": 0}
    Watched(**given, lam="auto", dictionary_from=dictionary_from).fit(film)
    return [coder.dictionary_ for coder in seen]


def test_what_the_dictionary_of_the_past_is_learned_from(film):
    """Where something is chosen, the frames that it is scored on, 7 of a window of 60, come after the choice."""
    walked, final = learned_from("past", film[:200])
    first = SparseCoder(n_atoms=10, alpha=0.1, random_state=0).fit(film[:193])
    assert np.array_equal(walked, first.dictionary_)
    assert np.array_equal(final, first.fit_further(film[193:200]).dictionary_)


def test_what_the_dictionary_of_a_window_is_learned_from(film):
    """Nothing but the window, even where another dictionary was learned before, to choose by."""
    for found, start, stop in zip(learned_from("window", film[:200]), (133, 140), (193, 200), strict=True):
        expected = SparseCoder(n_atoms=10, alpha=0.1, random_state=0).fit(film[start:stop])
        assert np.array_equal(found, expected.dictionary_)


def test_the_bound_is_the_factor_times_the_peak():
    X, coder = flash()
    for factor in (1.5, 2.0, 5.0):
        given = {"window": 60, "n_components": 8, "lam": 0.01, "coder": coder, "half_stencils": True, "rank_tol": 0.0}
        model = PSMT(**given, activity_bound=factor, on_cut="ignore").fit(X[:155])
        sums, moves = [], []
        for x in X[155:165]:
            model.update(x)
            previous, current = model.codes_[-2:]
            code = model._recovery()(model.embedding_ @ (2 * current - previous))
            sums.append(code.sum() / model.moments_.peak_activity)
            moves.append(np.linalg.norm(model.predict() - coder.decode(current[None])[0]) / model._watch.peak_norm)
        assert max(sums) == pytest.approx(factor)
        assert max(moves) <= factor + 1e-9


@pytest.mark.parametrize("cls", [PSMT, Baseline1, Baseline2, CopyCode])
def test_the_letter_is_a_preset_that_parameters_overrule(cls):
    model = cls.literal(n_atoms=12, rank_tol=1e-3)
    assert isinstance(model, cls)
    parameters = model.get_params()
    assert {name: parameters[name] for name in LITERAL.parameters} == LITERAL.parameters | {"rank_tol": 1e-3}
    assert {name: cls().get_params()[name] for name in OURS.parameters} == OURS.parameters


def test_the_letter_differs_from_ours_in_all_but_the_covariance():
    differs = {field.name for field in fields(OURS) if getattr(OURS, field.name) != getattr(LITERAL, field.name)}
    assert differs == {field.name for field in fields(OURS)} - {"centred"}


@pytest.mark.parametrize("cls", [PSMT, Baseline2])
def test_the_letter_is_kept_in_a_file(tmp_path, cls):
    X, coder = flash()
    model = cls.literal(window=60, n_components=8, lam=0.01, coder=coder).fit(X[:155])
    model.save(tmp_path / "model.psmt")
    again = cls.load(tmp_path / "model.psmt")
    assert {name: again.get_params()[name] for name in LITERAL.parameters} == LITERAL.parameters
    for x in X[155:163]:
        assert np.array_equal(model.update(x).predict(), again.update(x).predict())


def test_a_file_without_departures_has_ours(film):
    model = PSMT(n_atoms=12, window=60, n_components=4, lam=0.1, alpha=0.1).fit(film[:100])
    header, arrays = model.get_header(), model.get_state()
    for name in ("activity_bound", "merge_parallel", "dictionary_from"):
        del header["parameters"][name]
    again = PSMT.from_stored(header, arrays)
    assert {name: again.get_params()[name] for name in OURS.parameters} == OURS.parameters


def test_choosing_knows_the_departures():
    """The walk-forward table of a model is made by its own recovery."""
    X, coder = flash()
    given = {"window": 60, "n_components": 8, "coder": coder, "half_stencils": True, "rank_tol": 0.0}
    # The flash is among the codes that are predicted to choose lam by.
    bounded, free = (PSMT(**given, activity_bound=bound).fit(X[:165]).choice_.scores for bound in (2.0, None))
    assert min(free.values()) > 2.0 * min(bounded.values())


def test_departures_are_told():
    assert OURS.describe().count(";") == 5
    assert "V about zero" in Departures(centred=False).describe()
    with pytest.raises(ValueError, match=r"rank_tol=-1\.0 is out of range"):
        Departures(rank_tol=-1.0)
