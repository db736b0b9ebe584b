"""Series come back as they stand, or with an error that says where they are wrong."""

import warnings
from hashlib import sha256

import numpy as np
import pytest

from psmt.data import open_series
from psmt.errors import FrameSourceError, SeriesWarning

SERIES = np.random.default_rng(0).normal(size=(7, 3)) * [1.0, 1e6, 1e-6]


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


def table(separator, *, header=()):
    lines = [separator.join(header)] * bool(header) + [separator.join(map(repr, row)) for row in SERIES.tolist()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
def test_numbers_stay_as_they_are(dtype):
    array = SERIES.astype(dtype)
    series = open_series(array)
    assert series.values.dtype == np.float64
    assert np.array_equal(series.values, array)
    assert (series.name, series.n_frames, series.n_features, series.feature_names) == ("array", 7, 3, None)
    assert series.repeatable


@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t"), (".CSV", ", ")])
@pytest.mark.parametrize("header", [(), ("left", "right hand", "3rd")])
def test_tables_come_back_as_they_were_written(tmp_path, suffix, separator, header):
    path = write(tmp_path / f"sensors{suffix}", table(separator, header=header))
    series = open_series(path)
    assert np.array_equal(series.values, SERIES)
    assert series.feature_names == (header or None)
    assert series.name == path.name
    assert series.checksum() == sha256(path.read_bytes()).hexdigest()
    assert open_series(path, stop=2).checksum() == series.checksum()
    assert np.array_equal(open_series(path, stop=2).values, SERIES[:2])


def test_headers_of_other_programs_are_known(tmp_path):
    np.savetxt(tmp_path / "numpy.csv", SERIES, delimiter=",", header="a,b,c")
    assert open_series(tmp_path / "numpy.csv").feature_names == ("a", "b", "c")
    sheet = write(tmp_path / "sheet.csv", '\ufeff"a, b",c\r\n1,2\r\n\r\n3,4\r\n', encoding="utf-8")
    assert open_series(sheet).feature_names == ("a, b", "c")
    assert np.array_equal(open_series(sheet).values, [[1, 2], [3, 4]])


@pytest.mark.parametrize("array", [SERIES, np.asfortranarray(SERIES), SERIES[:, ::-1], SERIES.astype(np.float32)])
def test_files_and_memory_give_one_and_the_same(tmp_path, array):
    np.save(tmp_path / "series.npy", array)
    np.savez(tmp_path / "series.npz", array)
    for source in (array, tmp_path / "series.npy", tmp_path / "series.npz"):
        values = open_series(source).values
        assert type(values) is np.ndarray
        assert values.flags.c_contiguous
        assert np.array_equal(values, array)


def test_archives_name_their_series(tmp_path):
    np.savez(tmp_path / "one.npz", anything=SERIES)
    np.savez_compressed(tmp_path / "two.npz", times=np.arange(7), series=np.asfortranarray(SERIES))
    for name in ("one.npz", "two.npz"):
        assert np.array_equal(open_series(tmp_path / name).values, SERIES)
    np.savez(tmp_path / "both.npz", frames=np.zeros((2, 4, 4)), series=SERIES)
    with pytest.raises(FrameSourceError, match=r"2 arrays \(frames, series\) and more than one is called"):
        open_series(tmp_path / "both.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", r"line 2, column 2: 'x' is not a number; write numbers as 1\.5"),
        ("a,b\n1,2\n\n3,\n", r"line 4, column 2 \('b'\): the value is missing"),
        ("1,2\n3,1_5\n", r"line 2, column 2: '1_5' is not a number"),  # Python reads it as 15
        ("1;2\n3;4\n", r"line 2, column 1 \('1;2'\): '3;4' is not a number; .* commas"),
        ("1,5;2,5\n", r"line 1, column 2: '5;2' is not a number"),
        ("time,1\n3,4\n", r"line 1, column 1: 'time' is not a number"),
        ("1,2\n3,4,5\n", r"line 2 has 3 columns but the first line has 2"),
        ("a,b\n1\n", r"line 2 has 1 columns but the first line has 2"),
        ("1,2\n3,nan\n", r"bad\.csv has a NaN or infinite value in frame 1, column 1; remove such frames"),
        ("a,b\n1,2\n3,nan\n", r"bad\.csv has a NaN or infinite value in frame 1, column 'b'"),
        ("a,b\n1,inf\n", r"NaN or infinite value in frame 0"),
        ("a,b\n", r"bad\.csv has 0 frames; at least 1 are needed"),
        ("", r"bad\.csv is empty; write a line of numbers"),
        ("\n\n", r"bad\.csv is empty"),
    ],
)
def test_wrong_tables_name_line_and_column(tmp_path, text, message):
    with pytest.raises(FrameSourceError, match=message):
        open_series(write(tmp_path / "bad.csv", text))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"1,2\n\xff\xfe,4\n")
    with pytest.raises(FrameSourceError, match=r"bad\.csv cannot be read as a table of numbers"):
        open_series(tmp_path / "bad.csv")


def test_damage_after_stop_does_no_harm(tmp_path):
    path = write(tmp_path / "late.csv", "1,2\n3,4\n5,oops\n")
    assert np.array_equal(open_series(path, stop=2).values, [[1, 2], [3, 4]])
    array = SERIES.copy()
    array[4] = np.nan
    with pytest.raises(FrameSourceError, match="array has a NaN or infinite value in frame 4"):
        open_series(array)
    assert open_series(array, stop=4).n_frames == 4


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((5, 0)), "no features"),
        (np.zeros((0, 5)), "has 0 frames"),
        (np.zeros((5, 2), dtype=complex), "holds real numbers"),
        (np.full((5, 2), "a"), "holds real numbers"),
        (np.zeros(5), r"shape \(5,\).*a series is \(time, features\)"),
    ],
)
def test_arrays_that_are_no_series_are_refused(array, message):
    with pytest.raises(FrameSourceError, match=message):
        open_series(array)


def test_checksums_tell_series_apart():
    digest = open_series(SERIES).checksum()
    assert open_series(SERIES.copy(), stop=3).checksum() == digest
    others = [SERIES + 1, SERIES.T.copy(), SERIES.astype(np.float32)]
    assert len({digest, *(open_series(other).checksum() for other in others)}) == 4


def test_a_matlab_file_gives_its_matrix(tmp_path):
    from scipy.io import savemat

    values = np.random.default_rng(0).standard_normal((7, 3))
    savemat(tmp_path / "one.mat", {"roi": values, "tr": 0.72})
    savemat(tmp_path / "two.mat", {"other": np.ones((4, 4)), "series": values})
    savemat(tmp_path / "gift_ica_c1-1.mat", {"ic": np.ones((3, 50)), "tc": values})  # maps and time courses of GIFT
    for name in ("one.mat", "two.mat", "gift_ica_c1-1.mat"):
        assert np.array_equal(open_series(tmp_path / name).values, values)
    assert open_series(tmp_path / "one.mat", stop=4).n_frames == 4


def test_matlab_files_that_cannot_be_read_say_so(tmp_path):
    from scipy.io import savemat

    savemat(tmp_path / "two.mat", {"a": np.ones((4, 4)), "b": np.ones((4, 4))})
    with pytest.raises(FrameSourceError, match=r"has 2 matrices .* none is called 'series'"):
        open_series(tmp_path / "two.mat")
    savemat(tmp_path / "text.mat", {"a": "words"})
    with pytest.raises(FrameSourceError, match="has 0 matrices"):
        open_series(tmp_path / "text.mat")
    (tmp_path / "new.mat").write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(200))
    with pytest.raises(FrameSourceError, match=r"MATLAB 7.3 .*-v7"):
        open_series(tmp_path / "new.mat")
    (tmp_path / "broken.mat").write_bytes(b"no matlab at all" * 20)
    with pytest.raises(FrameSourceError, match="cannot be read as a MATLAB file"):
        open_series(tmp_path / "broken.mat")


def test_a_data_frame_is_a_series_with_names():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"left": [1.0, 2.0, 3.0], "right": [4, 5, 6]})
    source = open_series(table, stop=2)
    assert source.feature_names == ("left", "right")
    assert np.array_equal(source.values, [[1.0, 4.0], [2.0, 5.0]])
    with pytest.raises(FrameSourceError, match="'who'"):
        open_series(table.assign(who=["a", "b", "c"]))


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("day,a\n2026-01-01,1\n2026-01-02,2\n", "day"),
        ("a,day\n1,2026-01-01 12:00\n2,2026-01-01 13:00\n", "day"),
        ("2026-01-01,1\n2026-01-02,2\n", "column 1"),
        (",a\n0,1\n1,2\n", "column 1"),
        ("Time,a\n0.5,1\n1.0,2\n", "Time"),
        ("a,ID\n1,7\n2,8\n", "ID"),
    ],
)
def test_an_index_is_not_a_feature(tmp_path, text, index):
    (tmp_path / "table.csv").write_text(text)
    source = open_series(tmp_path / "table.csv")
    assert source.index_name == index
    np.testing.assert_array_equal(source.values, [[1.0], [2.0]])


def test_a_column_that_does_not_increase_is_a_feature(tmp_path):
    (tmp_path / "table.csv").write_text("t,a\n2,1\n1,2\n")
    source = open_series(tmp_path / "table.csv")
    assert source.index_name is None and source.feature_names == ("t", "a")


def test_dates_must_be_in_order(tmp_path):
    (tmp_path / "table.csv").write_text("day,a\n2026-01-02,1\n2026-01-01,2\n")
    with pytest.raises(FrameSourceError, match=r"line 3, column 1: 2026-01-01 comes after 2026-01-02.*sort the lines"):
        open_series(tmp_path / "table.csv")


def test_a_column_of_words_is_left_out(tmp_path):
    (tmp_path / "table.csv").write_text("a,station,b\n1,north,3\n2,south-2,4\n")
    with pytest.warns(SeriesWarning, match="'station' has words .* left out"):
        source = open_series(tmp_path / "table.csv")
    assert source.feature_names == ("a", "b")
    np.testing.assert_array_equal(source.values, [[1.0, 3.0], [2.0, 4.0]])


@pytest.mark.parametrize("times", [["2026-01-01", "2026-01-02", "2026-01-02"], ["0", "0.5", "0.5"]])
def test_repeated_times_are_reported(tmp_path, times):
    (tmp_path / "table.csv").write_text("time,a\n" + "".join(f"{time},{i}\n" for i, time in enumerate(times)))
    with pytest.warns(
        SeriesWarning, match=rf"1 repeated time, the first between row 1 \({times[1]}\) .*keep one row per time"
    ):
        source = open_series(tmp_path / "table.csv")
    assert source.feature_names == ("a",) and source.times == tuple(times)


@pytest.mark.parametrize("steps", [np.arange(30) + 9 * (np.arange(30) > 20), np.arange(30) * 1.0, np.arange(42)])
def test_a_gap_in_the_dates_is_reported(tmp_path, steps):
    """A gap is a rare long step. Weekends, which are left out of the last index, are not rare."""
    days = np.datetime64("2026-01-05") + np.asarray(steps, dtype=int)
    days = days[np.is_busday(days)] if len(days) == 42 else days
    (tmp_path / "table.csv").write_text("".join(f"{day},{i}\n" for i, day in enumerate(days)))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        open_series(tmp_path / "table.csv")
    gaps = [str(one.message) for one in found if one.category is SeriesWarning]
    assert len(gaps) == (1 if steps[-1] == 38 else 0)
    assert all("1 gap, the first between row 20 (2026-01-25) and row 21 (2026-02-04)" in gap for gap in gaps)
