"""Changes are made at the right frame, scored on frames that no method has learned from, and reproducible."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from studies.changes.claims import changes_detected, holding_helps
from studies.changes.report import EXPERIMENT, changes_page, changes_tables
from studies.changes.result import METHODS, ChangeRow, ChangesResult, median_interval, recovery_time
from studies.changes.run import changed, changes, fit_methods
from studies.changes.settings import KINDS, ChangesSettings

from made_up_series import wave
from psmt import PSMT
from psmt.errors import NotEnoughFramesError
from psmt.model.paper_options import OURS, Departures
from psmt.pipeline.run import Run
from psmt.report import render

SETTINGS = ChangesSettings(
    n_atoms=12, window=40, n_components=4, alpha=0.1, lam=0.1, before=6, horizon=10, places=3, jump=7
)
GIVEN = {"horizon": 10, "flash": 3.0, "jump": 7, "seed": 0}


@pytest.fixture(scope="module")
def film():
    return wave(120)


@pytest.fixture(scope="module")
def result(film, tmp_path_factory):
    return changes(film, SETTINGS, Run(folder=tmp_path_factory.mktemp("changes")))


def made_up(n_places, *, found=1.0, psmt=1.0, ignore=2.0, false=0.0):
    """A result with given errors of PSMT after a change and given shares of detected cuts."""
    n_frames = SETTINGS.before + SETTINGS.horizon
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.9, 1.1, (n_places, len(KINDS), len(METHODS), n_frames))
    errors[:, :, 0, SETTINGS.before + 1 :] *= psmt
    errors[:, :, 1, SETTINGS.before + 1 :] *= ignore
    cut = np.zeros((n_places, len(KINDS), n_frames))
    cut[: round(found * n_places), :3, SETTINGS.before] = 1
    cut[:, 3] = false
    places = tuple(range(50, 50 + n_places))
    return ChangesResult(settings=SETTINGS, places=places, errors=errors, surprise=1 + cut, cut=cut)


def test_each_kind_of_change(film):
    np.testing.assert_array_equal(changed(film, 50, "none", **GIVEN), film[50:60])
    np.testing.assert_array_equal(changed(film, 50, "jump", **GIVEN), film[57:67])
    flash = changed(film, 50, "flash", **GIVEN)
    np.testing.assert_allclose(flash[0] - film[50], 3 * film[:50].std())
    np.testing.assert_array_equal(flash[1:], film[51:60])
    cut = changed(film, 50, "cut", **GIVEN)
    starts = [start for start in range(111) if np.array_equal(film[start : start + 10], cut)]
    assert len(starts) == 1
    assert 60 <= starts[0] <= 110


def test_errors_before_the_change_do_not_depend_on_it(result):
    assert result.errors.shape == (3, len(KINDS), len(METHODS), 16)
    assert np.isfinite(result.errors).all()
    for kind in range(1, len(KINDS)):
        np.testing.assert_array_equal(result.errors[:, kind, :, :6], result.errors[:, 0, :, :6])


def test_errors_of_copying_are_differences_of_frames(film, result):
    place = result.places[1]
    errors = np.mean(np.diff(film[place - 7 : place + 10], axis=0) ** 2, axis=1)
    np.testing.assert_allclose(result.errors_of("none", "copy")[1], errors)


def test_flashes_are_detected_and_ordinary_frames_are_not(result):
    assert result.detected("flash") == 1.0
    assert result.false_alarms() == 0.0


def test_results_do_not_depend_on_the_executor(film, result, tmp_path):
    with ThreadPoolExecutor(2) as executor:
        again = changes(film, SETTINGS, Run(folder=tmp_path, executor=executor))
    np.testing.assert_array_equal(again.errors, result.errors)
    assert list(map(str, again.rows())) == list(map(str, result.rows()))


@pytest.mark.parametrize("departures", [OURS, Departures.literal()])
def test_departures_reach_all_models(departures):
    past = np.random.default_rng(0).standard_normal((40, 9))
    given = {"n_atoms": 8, "window": 24, "n_components": 3, "alpha": 0.1, "lam": 0.1, "seed": 0}
    methods = fit_methods(past, **given, departures=departures.parameters)
    layered = {name: method for name, method in methods.items() if isinstance(method, PSMT)}
    assert len(layered) == 7
    for name, method in layered.items():
        expected = departures.parameters | ({"on_cut": "ignore"} if name == "psmt_ignore" else {})
        assert {name: method.get_params()[name] for name in expected} == expected
    assert layered["psmt_gain"].coder_ is layered["psmt"].coder_  # learned once


def test_files(result):
    files = EXPERIMENT.written(result)
    assert set(files) == {"changes.csv", "changes.png"}
    assert files["changes.png"].startswith(b"\x89PNG")
    assert b"Holding the code after a cut" in render(EXPERIMENT.page(result, files))
    lines = files["changes.csv"].decode().splitlines()
    assert lines[0] == ",".join(ChangeRow._fields)
    assert len(lines) == 1 + result.errors.size


def test_later_frames_do_not_change_errors(film, tmp_path):
    one = replace(SETTINGS, at=(50,))
    other = film.copy()
    other[60:] += 100.0
    first, second = (changes(values, one, Run(folder=tmp_path / str(k))) for k, values in enumerate((film, other)))
    for kind in ("flash", "none"):
        for method in METHODS:
            np.testing.assert_array_equal(first.errors_of(kind, method), second.errors_of(kind, method))


def test_places_are_given_or_evenly_spaced():
    assert SETTINGS.chosen_places(120) == (46, 73, 100)
    assert replace(SETTINGS, at=(60, 50, 60)).chosen_places(120) == (60, 50)
    assert ChangesSettings.make({"at": (300, 400)}, preset="quick").at == (300, 400)
    with pytest.raises(NotEnoughFramesError, match=r"at=30 .* use a frame from 46 to 100"):
        replace(SETTINGS, at=(30,)).check(120)
    with pytest.raises(NotEnoughFramesError, match="need at least 66"):
        SETTINGS.check(60)
    SETTINGS.check(66)


def test_one_lucky_frame_is_not_a_recovery():
    level = [1.0] * 4
    assert recovery_time(np.array(level + [9.0] + [1.4] * 9), 4) == 1
    assert recovery_time(np.array(level + [9.0, 9.0, 1.0, 9.0, 9.0] + [1.0] * 8), 4) == 5
    assert recovery_time(np.array(level + [9.0] * 10), 4) == 10


def test_intervals_of_medians_cover_95_percent():
    rng = np.random.default_rng(0)
    held = [low <= 0 <= high for _, low, high in (median_interval(rng.standard_normal(16)) for _ in range(800))]
    assert 0.93 < np.mean(held) < 0.995
    assert np.isnan(median_interval(np.arange(4.0)).low)


def test_verdicts():
    assert holding_helps(made_up(12)).as_measured.verdict == "yes"
    worse = holding_helps(made_up(12, psmt=2.0, ignore=1.0))
    assert (worse.as_measured.verdict, worse.size) == ("no", "1.99 × the error, after each cut")  # 2, with some spread
    assert holding_helps(made_up(12, ignore=1.0)).as_measured.verdict == "inconclusive"
    assert (
        holding_helps(made_up(3)).as_measured.verdict
        == changes_detected(made_up(3)).as_measured.verdict
        == "inconclusive"
    )
    assert changes_detected(made_up(12)).as_measured.verdict == "yes"
    assert changes_detected(made_up(12, found=0.5)).as_measured.verdict == "no"
    assert changes_detected(made_up(12, false=1.0)).as_measured.verdict == "no"


def test_tables_mark_the_best_and_what_loses_to_copying(result):
    for table in changes_tables(result):
        marks = {row[0].text: row[2].mark for row in table.rows}
        assert "best" in marks.values()
        order = list(marks)
        assert all(marks[name] != "loses" for name in order[: order.index("copy last frame") + 1])
    assert changes_page(result, b"").lead.count(":") == 4
