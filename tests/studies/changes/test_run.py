"""Changes put into a film: where they are said to be, scored on what nobody has learned from, the same every time."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from studies.changes.claims import cuts_found, holding_pays
from studies.changes.report import EXPERIMENT
from studies.changes.result import METHODS, ChangesResult, Row, median_interval, recovery_time
from studies.changes.run import changed, changes
from studies.changes.section import changes_page, changes_tables
from studies.changes.settings import KINDS, ChangesSettings

from conftest import wave
from psmt.errors import NotEnoughFramesError
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
    """A result in which PSMT's errors after a change are those given, and so are the cuts."""
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


def test_each_change_is_what_it_says(film):
    np.testing.assert_array_equal(changed(film, 50, "none", **GIVEN), film[50:60])
    np.testing.assert_array_equal(changed(film, 50, "jump", **GIVEN), film[57:67])
    flash = changed(film, 50, "flash", **GIVEN)
    np.testing.assert_allclose(flash[0] - film[50], 3 * film[:50].std())
    np.testing.assert_array_equal(flash[1:], film[51:60])
    cut = changed(film, 50, "cut", **GIVEN)
    starts = [start for start in range(111) if np.array_equal(film[start : start + 10], cut)]
    assert len(starts) == 1
    assert 60 <= starts[0] <= 110


def test_until_the_change_the_film_is_as_it_was(result):
    assert result.errors.shape == (3, len(KINDS), len(METHODS), 16)
    assert np.isfinite(result.errors).all()
    for kind in range(1, len(KINDS)):
        np.testing.assert_array_equal(result.errors[:, kind, :, :6], result.errors[:, 0, :, :6])


def test_copying_is_what_it_is(film, result):
    place = result.places[1]
    errors = np.mean(np.diff(film[place - 7 : place + 10], axis=0) ** 2, axis=1)
    np.testing.assert_allclose(result.errors_of("none", "copy")[1], errors)


def test_flashes_are_told_and_ordinary_frames_are_not(result):
    assert result.found("flash") == 1.0
    assert result.false_alarms() == 0.0


def test_the_same_every_time_and_wherever_it_runs(film, result, tmp_path):
    with ThreadPoolExecutor(2) as executor:
        again = changes(film, SETTINGS, Run(folder=tmp_path, executor=executor))
    np.testing.assert_array_equal(again.errors, result.errors)
    assert list(map(str, again.rows())) == list(map(str, result.rows()))


def test_files(result):
    files = EXPERIMENT.written(result)
    assert set(files) == {"changes.csv", "changes.png"}
    assert files["changes.png"].startswith(b"\x89PNG")
    assert b"Holding the code after a cut pays" in render(EXPERIMENT.page(result, files))
    lines = files["changes.csv"].decode().splitlines()
    assert lines[0] == ",".join(Row._fields)
    assert len(lines) == 1 + result.errors.size


def test_what_comes_later_has_no_say(film, tmp_path):
    one = replace(SETTINGS, at=(50,))
    other = film.copy()
    other[60:] += 100.0
    first, second = (changes(values, one, Run(folder=tmp_path / str(k))) for k, values in enumerate((film, other)))
    for kind in ("flash", "none"):
        for method in METHODS:
            np.testing.assert_array_equal(first.errors_of(kind, method), second.errors_of(kind, method))


def test_places_are_given_or_all_over_the_film():
    assert SETTINGS.chosen_places(120) == (46, 73, 100)
    assert replace(SETTINGS, at=(60, 50, 60)).chosen_places(120) == (60, 50)
    assert ChangesSettings.make({"at": (300, 400)}, preset="quick").at == (300, 400)
    with pytest.raises(NotEnoughFramesError, match=r"at=30 .* use a frame from 46 to 100"):
        replace(SETTINGS, at=(30,)).check(120)
    with pytest.raises(NotEnoughFramesError, match="need at least 66"):
        SETTINGS.check(60)
    SETTINGS.check(66)


def test_recovery_is_steady():
    level = [1.0] * 4
    assert recovery_time(np.array(level + [9.0] + [1.4] * 9), 4) == 1
    assert recovery_time(np.array(level + [9.0, 9.0, 1.0, 9.0, 9.0] + [1.0] * 8), 4) == 5
    assert recovery_time(np.array(level + [9.0] * 10), 4) == 10


def test_an_interval_of_a_median_holds_it_95_times_in_100():
    rng = np.random.default_rng(0)
    held = [low <= 0 <= high for _, low, high in (median_interval(rng.standard_normal(16)) for _ in range(800))]
    assert 0.93 < np.mean(held) < 0.995
    assert np.isnan(median_interval(np.arange(4.0)).low)


def test_verdicts():
    assert holding_pays(made_up(12)).verdict == "holds"
    worse = holding_pays(made_up(12, psmt=2.0, ignore=1.0))
    assert (worse.verdict, worse.size) == ("does not hold", "1.99 × the error, after cuts")  # 2, with some spread
    assert holding_pays(made_up(12, ignore=1.0)).verdict == "inconclusive"
    assert holding_pays(made_up(3)).verdict == cuts_found(made_up(3)).verdict == "inconclusive"
    assert cuts_found(made_up(12)).verdict == "holds"
    assert cuts_found(made_up(12, found=0.5)).verdict == "does not hold"
    assert cuts_found(made_up(12, false=1.0)).verdict == "does not hold"


def test_tables_mark_the_best_and_what_loses_to_copying(result):
    for table in changes_tables(result):
        marks = {row[0].text: row[2].mark for row in table.rows}
        assert "best" in marks.values()
        order = list(marks)
        assert all(marks[name] != "loses" for name in order[: order.index("copy last frame") + 1])
    assert changes_page(result, b"").lead.count(":") == 4
