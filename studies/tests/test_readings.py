"""Each reading is tried once and changes only its own detail, and verdicts follow from the numbers."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from studies.readings.claims import readings_claims
from studies.readings.figure import readings_figure
from studies.readings.reading import CENTRES, Reading, all_readings
from studies.readings.report import EXPERIMENT, fig_4_table, table_1_table
from studies.readings.result import METHODS, Predicted, ReadingsResult
from studies.readings.run import read_paper
from studies.readings.settings import ReadingsSettings
from studies.readings.tasks import predict_start, reconstruct_frames, through_embedding

from made_up_series import wave
from psmt import PSMT
from psmt.coding import SparseCoder
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import mse
from psmt.experiments.film_tasks import learn_dictionary
from psmt.experiments.options.parameters import make_departures
from psmt.model.baselines import Baseline1, Baseline2
from psmt.model.paper_options import OURS, Departures
from psmt.pipeline.run import Run
from psmt.report import render

TINY = ReadingsSettings(
    n_atoms=(8, 12), ratios=(3.0,), n_windows=2, n_starts=2, horizon=3, lam=(0.1, 30.0), alpha=0.1, max_epochs=1
)
INCONCLUSIVE = "inconclusive"


@pytest.fixture(scope="module")
def film():
    return wave(140)


@pytest.fixture(scope="module")
def done(film, tmp_path_factory):
    """A tiny run, and its folder."""
    folder = tmp_path_factory.mktemp("readings")
    return read_paper(film, TINY, Run(folder=folder)), folder


def found(result, **reading):
    (one,) = [own for own in result.by_reading if own.reading == Reading(**reading)]
    return one


# The readings


def test_every_reading_is_there_once_and_has_a_unique_name():
    readings = all_readings(ReadingsSettings().lam)
    assert len(set(readings)) == len(readings) == len({reading.name for reading in readings})
    assert set(CENTRES) <= set(readings)
    for field, values in {
        "lam": {0.1, 1.0, 3.0, 10.0, 30.0},
        "components": {1 / 16, 0.25, None},
        "dictionary": {"usual", "film", "past", "window"},
        "half_stencils": {False, True},
        "centred": {False, True},
        "scored": {"inside", "after"},
    }.items():
        assert {getattr(reading, field) for reading in readings} == values


def test_the_table_has_each_reading_once(done):
    result, _ = done
    rows = list(csv.DictReader(EXPERIMENT.files["readings.csv"](result).decode().splitlines()))
    assert [row["reading"] for row in rows] == [reading.name for reading in TINY.readings]
    assert float(rows[0]["mse_M8_H24"]) == result.by_reading[0].means[8, 24]
    assert {row["more_atoms"] for row in rows} <= {"yes", "no", INCONCLUSIVE}
    for table in (EXPERIMENT.shown(result)[0], table_1_table(result), fig_4_table(result)):
        assert [row[0].text for row in table.rows] == [reading.name for reading in TINY.readings]


@pytest.mark.parametrize(
    ("change", "table", "prediction"),
    [
        ({"lam": 30.0}, True, True),
        ({"components": 1 / 16}, True, True),
        ({"dictionary": "film"}, False, True),  # that of Table 1 already
        ({"dictionary": "past"}, True, False),  # that of Fig. 4 already
        ({"dictionary": "window"}, True, True),
        ({"half_stencils": True}, True, True),
        ({"centred": False}, True, True),
        ({"scored": "after"}, True, False),
    ],
)
def test_each_reading_changes_its_own_detail(done, change, table, prediction):
    result, _ = done
    base, other = found(result), found(result, **change)
    assert (other.means != base.means) == table
    assert (other.logs["psmt"] != base.logs["psmt"]) == prediction


# What they compute


@pytest.mark.parametrize("source", ["film", "past", "window"])
def test_dictionaries_are_learned_from_the_frames_of_the_reading(film, done, source):
    result, _ = done
    (_, end), window = TINY.ends(140), 36
    assert end == 134
    frames = {"film": film, "past": film[:end], "window": film[end - window : end]}[source]
    dictionary = learn_dictionary(patches=frames, n_atoms=12, alpha=0.1, max_epochs=1, seed=0)["dictionary"]
    shown = film[end - window : end]
    codes = SparseCoder.from_dictionary(dictionary, alpha=0.1).transform(shown)
    frames = through_embedding(codes, dictionary, n_components=3, lam=0.1)
    reading = Reading(dictionary="usual" if source == "film" else source)
    np.testing.assert_allclose(result.tables[reading][12, window][1], mse(frames, shown), rtol=1e-6)


def test_frames_after_the_window_do_not_change_its_embedding(film):
    dictionary = learn_dictionary(patches=film, n_atoms=8, alpha=0.1, max_epochs=1, seed=0)["dictionary"]
    given = {
        "n_window": 60,
        "alpha": 0.1,
        "n_components": 4,
        "lam": (0.1, 3.0),
        "centred": True,
        "half_stencils": False,
        "rank_tol": 1e-6,
        **OURS.recovery,
    }
    both = reconstruct_frames(patches=film[:80], dictionary=dictionary, **given)
    assert both["inside"].shape == (2, 60) and both["after"].shape == (2, 20)
    other = np.concatenate([film[:60], film[100:120]])
    changed = reconstruct_frames(patches=other, dictionary=dictionary, **given)
    np.testing.assert_allclose(changed["inside"], both["inside"], rtol=1e-7)
    assert not np.allclose(changed["after"], both["after"])


def test_atoms_that_the_window_did_not_use_are_not_recovered_after_it():
    # Atom 3 is used only after the window, so the embedding does not depend on it.
    rng = np.random.default_rng(0)
    codes = np.maximum(rng.standard_normal((60, 4)), 0)
    codes[:40, 3] = 0.0
    frames = through_embedding(codes, np.eye(4), n_components=None, lam=0.0, n_window=40)
    np.testing.assert_allclose(frames[:40], codes[:40], atol=1e-4)
    np.testing.assert_array_equal(frames[40:, 3], 0.0)
    assert codes[40:, 3].max() > 1


def test_a_film_without_motion_is_refused(film):
    given = {"window": 20, "alpha": 0.1, "n_components": 4, "centred": True, "half_stencils": False, "rank_tol": 1e-3}
    still = np.repeat(film[:1], 24, axis=0)
    with pytest.raises(ValueError, match=r"the 20 codes of a window never change.*use a livelier film"):
        predict_start(
            patches=still, dictionary=film[:6] / np.linalg.norm(film[:6], axis=1)[:, None], lam=(0.1,), **given
        )


LETTER = {"rank_tol": 0.0, "on_cut": "ignore", **Departures.literal().recovery}


@pytest.mark.parametrize("how", [{}, {"centred": False}, {"half_stencils": True}, LETTER])
def test_a_start_is_what_the_models_predict(film, how):
    dictionary = learn_dictionary(patches=film, n_atoms=12, alpha=0.1, max_epochs=1, seed=0)["dictionary"]
    given = {
        "window": 60,
        "alpha": 0.1,
        "n_components": 4,
        "centred": True,
        "half_stencils": False,
        "rank_tol": OURS.rank_tol,
    }
    given |= how
    result = predict_start(patches=film[:64], dictionary=dictionary, lam=(0.1, 3.0), **given)
    coder = SparseCoder.from_dictionary(dictionary, alpha=0.1)
    estimates = coder.inverse_transform(coder.transform(film[:64]))
    for kind, method in ((PSMT, "psmt"), (Baseline2, "baseline2"), (Baseline1, "baseline1")):
        model = kind(window=60, n_components=4, lam=3.0, coder=coder, **how).fit(film[:60])
        predicted = np.array([model.update(film[k]).predict() for k in (60, 61, 62)])
        place = METHODS.index(method)
        np.testing.assert_allclose(result["vs_code"][1, place], mse(predicted, estimates[61:]), rtol=1e-6)
        np.testing.assert_allclose(result["vs_frame"][1, place], mse(predicted, film[61:64]), rtol=1e-6)
    copied, mean = METHODS.index("copy"), METHODS.index("mean")
    np.testing.assert_allclose(result["vs_code"][0, copied], mse(estimates[60:63], estimates[61:]))
    np.testing.assert_allclose(result["vs_frame"][0, mean], mse(film[:60].mean(axis=0), film[61:64]))


def test_penalties_share_tasks_and_a_second_run_computes_nothing(film, done, monkeypatch):
    _, folder = done
    before = {path.name for path in (folder / "tasks").iterdir()}
    embeddings = {replace(r, lam=0.0, scored="inside", dictionary=r.learned_from("table")) for r in TINY.readings}
    # Two combinations at two ends. The first window of the longer H begins the film: its past is the window.
    assert len([name for name in before if name.startswith("readings-M")]) == 4 * len(embeddings) - 2
    monkeypatch.setattr(SparseCoder, "fit", None)
    monkeypatch.setattr(SparseCoder, "transform", None)
    read_paper(film, TINY, Run(folder=folder))
    assert {path.name for path in (folder / "tasks").iterdir()} == before


# Verdicts


TWO = (Reading(), Reading(lam=30.0))


def made_up(table, logs, *, noise=0.02, readings=TWO):
    """A result in which Table 1 has these errors by (M, H), and methods these log errors, under all readings alike."""
    settings = ReadingsSettings(n_atoms=(8, 16), horizon=5)
    rng = np.random.default_rng(0)
    tables = {
        size: mean * np.exp(noise * rng.standard_normal((settings.n_windows, size[1]))) for size, mean in table.items()
    }
    shape = (settings.n_starts, len(METHODS), settings.horizon)
    errors = np.exp(np.array([logs[method] for method in METHODS])[:, None] + noise * rng.standard_normal(shape))
    return ReadingsResult(
        settings=settings,
        n_frames=3000,
        tables={
            reading: {
                size: own[:, : None if reading.scored == "inside" else settings.n_after] for size, own in tables.items()
            }
            for reading in readings
        },
        predictions=dict.fromkeys(readings, Predicted(errors, errors)),
    )


PAPER_LIKE = {(8, 16): 0.9, (8, 24): 0.5, (16, 32): 0.4, (16, 48): 0.2}
IN_ORDER = {"psmt": -5.0, "baseline2": -4.0, "baseline1": -1.0, "copy": -4.5, "mean": 0.0}


def outcomes(result):
    return {claim.key: claim.as_measured.verdict for claim in readings_claims(result)}


def test_the_papers_pattern_and_size_are_found():
    result = made_up(PAPER_LIKE, IN_ORDER)
    assert set(outcomes(result).values()) == {"yes"}
    assert readings_claims(result)[0].support == ("λ = 0.1, f = M / 4", "λ = 30, f = M / 4")


def test_other_patterns_and_sizes_do_not_hold():
    small = made_up({size: 0.1 * mean for size, mean in PAPER_LIKE.items()}, IN_ORDER | {"copy": -9.0})
    assert outcomes(small) == {
        "reading_table_1": "yes",
        "reading_table_1_size": "no",
        "reading_fig_4": "yes",
        "reading_fig_4_size": "yes",
        "reading_both": "no",
        "reading_copying": "no",
    }
    rising = made_up(PAPER_LIKE | {(8, 24): 1.2}, IN_ORDER | {"baseline2": -6.0, "psmt": -1.0})
    assert (rising.by_reading[0].more_atoms, rising.by_reading[0].more_frames) == ("yes", "no")
    assert outcomes(rising)["reading_fig_4"] == "no"
    tie = made_up(PAPER_LIKE | {(8, 24): 0.9}, IN_ORDER | {"baseline2": -5.0}, noise=1e-4)
    assert (tie.by_reading[0].more_frames, tie.by_reading[0].order) == (INCONCLUSIVE, INCONCLUSIVE)


# Pictures, settings


def test_the_figure_has_a_row_per_reading_and_no_labels_overlap():
    figure = readings_figure(made_up(PAPER_LIKE, IN_ORDER, readings=TINY.readings))
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    names = list(figure.axes[0].get_yticklabels())
    assert [label.get_text() for label in names] == [reading.name for reading in TINY.readings]
    texts = [*figure.texts, *names]
    for axes in figure.axes:
        texts += [*axes.texts, axes.xaxis.label]
        texts += axes.get_legend().get_texts() if axes.get_legend() else []
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    boxes = [(t.get_window_extent(renderer), t.get_text()) for t in texts if t.get_visible() and t.get_text()]
    for i, (box, text) in enumerate(boxes):
        assert [other for there, other in boxes[:i] if box.overlaps(there)] == [], text
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text


def test_the_page_says_which_readings_hold(done):
    result, _ = done
    page = render(EXPERIMENT.page(result, EXPERIMENT.written(result))).decode()
    assert page.count("<img") == 1
    for reading in TINY.readings:
        assert reading.name in page


def test_options_are_taken_as_settings():
    given = ReadingsSettings.make({"n_atoms": (8, 12), "lam": (2.0,), "alpha": 0.3, "seed": 3})
    assert given == ReadingsSettings(n_atoms=(8, 12), lam=(2.0,), alpha=0.3, seed=3)
    assert ReadingsSettings.make(preset="quick") == ReadingsSettings(n_atoms=(64, 128), horizon=15)
    literal = ReadingsSettings.make({"departures": make_departures(literal=True)})
    assert literal.common_departures == "none: the paper to the letter"
    assert literal.departures.activity_bound is None and literal.departures.rank_tol == 0
    assert {reading.lam for reading in given.readings} == {2.0, *(centre.lam for centre in CENTRES)}


def test_windows_of_all_sizes_end_at_the_same_frames_and_fit():
    settings = ReadingsSettings()
    ends, starts = settings.ends(10_000), settings.starts(10_000)
    assert len(ends) == 8 and len(starts) == 12
    assert (ends[0], ends[-1]) == (3072, 10_000 - 256)
    assert (starts[0], starts[-1]) == (1536, 10_000 - 31)
    settings.check(3072 + 256)
    with pytest.raises(NotEnoughFramesError, match=r"has 3327 frames.*need 3328"):
        settings.check(3327)
    with pytest.raises(ValueError, match=r"lam=-1\.0"):
        ReadingsSettings(lam=(-1.0,))
    with pytest.raises(ValueError, match=r"len\(ratios\)=0"):
        ReadingsSettings(ratios=())
