"""Messages of bad calls: each names the value, the bound and the way out."""

import sys
import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest

import psmt
from psmt import PSMT, FramePredictor, SparseCoder, TemporalEmbedding, read_patches
from psmt.errors import SeriesWarning
from psmt.numerics.arrays import lowest_eigenpairs
from psmt.series import join_series
from psmt.surprise import SurpriseDetector
from psmt.utils.validation import check_time_index, warn_of_mistakes
from psmt.video.prior import Prior

ROWS = np.cumsum(np.random.default_rng(0).standard_normal((600, 3)), axis=0)
TABLE = pd.DataFrame(ROWS, columns=["temp", "wind", "rain"])


@pytest.fixture(scope="module")
def model():
    return PSMT(n_atoms=16, window=100, n_components=4, lam=0.1, random_state=0, alpha="auto").fit(TABLE)


def fit(X, **more):
    return lambda _: PSMT.for_series().fit(X, **more)


GAP = TABLE.copy()
GAP.loc[7, "wind"] = np.nan
DATED = TABLE.assign(when=pd.date_range("2026-01-01", periods=600))
DAILY = TABLE.set_index(pd.date_range("2026-01-01", periods=600))
HOLES = DAILY.iloc[[*range(41), *range(51, 101), *range(105, 600)]]
SHUFFLED = DAILY.iloc[[*range(5), 9, 7, *range(10, 60)]]
OTHER = Prior(("nonsense",), np.ones((6, 1, 1), np.float32), np.ones((6, 1), np.float32))

ERRORS = {
    "too long a window": (
        lambda _: PSMT().fit(ROWS),
        "600 frames",
        "window=1536",
        "window='auto'",
        "PSMT.for_series()",
    ),
    "one axis": (fit(ROWS[:, 0]), "(600,)", "(time, features)", "np.reshape(X, (-1, 1))"),
    "no name": (lambda _: PSMT(64), "PSMT takes parameters by name", "PSMT(n_atoms=64)"),
    "no name for frames": (lambda _: FramePredictor("gain"), "FramePredictor(extrapolation='gain')"),
    "no name for an embedding": (lambda _: TemporalEmbedding(8), "TemporalEmbedding(n_components=8)"),
    "no name for alarms": (lambda _: SurpriseDetector(2), "SurpriseDetector(alarms_per_hour=2)"),
    "misspelt": (lambda _: PSMT(n_atom=64), "PSMT has no parameter 'n_atom'", "did you mean 'n_atoms'?"),
    "a gap": (fit(GAP), "NaN", "frame 7", "column 'wind'", "interpolate()"),
    "a gap in an array": (fit(GAP.to_numpy()), "NaN", "frame 7", "column 1"),
    "dates": (fit(DATED), "column 'when'", "is a date", "set_index('when')"),
    "dates alone": (fit(DATED[["when"]]), "column 'when'", "is a date", "set_index('when')"),
    "text": (fit(TABLE.assign(city="Rome")), "column 'city'", "'Rome'", "drop it"),
    "out of order": (fit(SHUFFLED), "2026-01-10", "row 5", "2026-01-08", "X.sort_index()", "X.reset_index(drop=True)"),
    "two series": (fit([ROWS, ROWS]), "a list of 2 series", "psmt.series.join_series(X)", "lengths=lengths"),
    "two series of two lengths": (fit([ROWS, ROWS[:9]]), "a list of 2 series", "join_series"),
    "a table of one row": (lambda m: m.update(TABLE.iloc[[3]]), "(1, 3)", "(3,)", "table.iloc[i]", "partial_fit"),
    "two features": (lambda m: m.update(ROWS[0, :2]), "(2,)", "(3,)"),
    "an old prior": (
        lambda _: OTHER.for_candidates(("a", "b")),
        "1 candidates",
        "'nonsense'",
        "psmt learn",
        "default'",
    ),
    "a coder's parameter": (lambda _: SparseCoder(n_atom=9), "'n_atom'", "did you mean 'n_atoms'?"),
    "a path": (fit("film.mp4"), "psmt.datasets.load(path).X"),
    "frames": (fit(np.zeros((30, 4, 5))), "(30, 4, 5)", "X.reshape(30, -1)", "FramePredictor"),
    "one length": (fit(ROWS, lengths=600), "lengths=600 is not a sequence"),
    "one quantile": (lambda m: m.predict_quantiles(0.5), "quantiles=0.5 is not a sequence"),
    "a percentage": (lambda m: m.predict(interval=90), "interval=90", "between 0 and 1", "0.9"),
    "no horizon": (lambda m: m.predict(0), "horizon=0", ">= 1"),
    "rows of one axis": (lambda m: m.predict([5, 6, 7]), "(3,)", "(time, features)"),
}
WARNINGS = {
    "transposed": (fit(ROWS[:40].T.repeat(3, axis=0)), "9 rows and 40 columns", "give X.T"),
    "few rows": (fit(ROWS[:5]), "5 rows", "at least 20"),
    "gaps in dates": (fit(HOLES), "2 gaps", "2026-02-10", "row 40", "2026-02-21", "lengths=[41, 50, 495]"),
    "gaps in numbers": (fit(TABLE.drop(index=[7, 8])), "1 gap,", "between row 6 (6) and row 7 (9)", "lengths=[7, 591]"),
    "repeated dates": (
        fit(DAILY.iloc[[*range(30), 29, *range(30, 90)]]),
        "1 repeated time",
        "row 29 (2026-01-30",
        "X.groupby(level=0).mean()",
    ),
    "constant": (fit(TABLE.assign(rain=3.0)), "1 of 3 columns", "constant ('rain')", "drop"),
}


@pytest.mark.parametrize(("call", "words"), [(call, words) for call, *words in ERRORS.values()], ids=ERRORS)
def test_an_error_says_what_to_do(model, call, words):
    with pytest.raises((TypeError, ValueError)) as error:
        call(model)
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


@pytest.mark.parametrize(("call", "words"), [(call, words) for call, *words in WARNINGS.values()], ids=WARNINGS)
def test_a_warning_says_what_to_do(model, call, words):
    with pytest.warns(SeriesWarning) as found:
        call(model)
    text = " ".join(str(one.message) for one in found if one.category is SeriesWarning)
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in: {text}"


def test_good_series_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeriesWarning)
        for X in (ROWS[:60], np.tile(ROWS[:25], 10)):
            PSMT.for_series(random_state=0).fit(X)


@pytest.mark.parametrize("n_times", [300, 400, 1200, 2000])
@pytest.mark.parametrize("n_features", [6, 30, 100])
def test_a_transposed_series_gives_a_warning(n_features, n_times):
    rng = np.random.default_rng(n_features + n_times)
    walk = np.cumsum(rng.standard_normal((n_times, n_features)), axis=0)
    waves = np.sin(np.arange(n_times)[:, None] / rng.uniform(4, 40, n_features) + rng.uniform(0, 6, n_features))
    for X in (walk, waves + 0.1 * rng.standard_normal(waves.shape)):
        with pytest.warns(SeriesWarning, match=r"give X\.T"):
            warn_of_mistakes(X.T, X.T)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_mistakes(X, X)


@pytest.mark.parametrize("speed", [0.5, 8])
@pytest.mark.parametrize("kind", ["glide?seed=3&size=32", "glide?size=16&noise=0.2"])
def test_patches_of_films_do_not_count_as_transposed(kind, speed):
    patches = read_patches(f"builtin:{kind}&frames=300&speed={speed}", frame_size=None).values
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*give X.T")
        warnings.filterwarnings("ignore", message=".*constant")
        for n in (20, 48, 100, 255, 300):
            for first in range(0, 301 - n, n):
                warn_of_mistakes(None, patches[first : first + n])


def test_the_advice_works():
    one = PSMT.for_series(random_state=0).fit(np.reshape(ROWS[:, 0], (-1, 1)))
    assert one.predict(3).shape == (3, 1)
    X, lengths = join_series([ROWS, ROWS[:90]])
    assert PSMT.for_series(random_state=0).fit(X, lengths=lengths).predict().shape == (3,)
    PSMT.for_series(random_state=0).fit(SHUFFLED.sort_index())
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeriesWarning)
        PSMT.for_series(random_state=0).fit(HOLES, lengths=[41, 50, 495])


@pytest.mark.parametrize(
    "index", [pd.bdate_range("2026-01-01", periods=600), pd.RangeIndex(0, 6000, 10), list("abc") * 200]
)
def test_an_index_without_gaps_gives_no_warning(index):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SeriesWarning)
        check_time_index(TABLE.set_index(pd.Index(index)), [600])


def test_polars_that_is_missing_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="needs polars: pip install polars, or use 'pandas'"):
        copy(model).set_output(transform="polars").predict()


def test_no_eigenpairs_are_no_error_of_lapack(capfd):
    values, vectors = lowest_eigenpairs(np.eye(4), np.eye(4), 0)
    assert values.shape == (0,) and vectors.shape == (4, 0)
    assert capfd.readouterr().err == ""


def test_the_package_lists_its_public_names():
    public = [name for name in dir(psmt) if not name.startswith("_")]
    assert public == sorted(psmt.__all__)
    namespace = {}
    exec("from psmt import *", namespace)
    assert set(psmt.__all__) <= set(namespace)
