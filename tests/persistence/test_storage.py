"""Saved models: the same bytes of prediction, whole or not at all, and never a pickle."""

import errno
import json
import os
import pickle
import stat
import zipfile
from io import BytesIO

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psmt import PSMT, SparseCoder
from psmt.errors import DeviceError, ModelFileError
from psmt.model.baselines import Baseline1, Baseline2, CopyCode
from psmt.persistence import load_model
from psmt.utils.files import writing


def small(cls=PSMT, **parameters):
    return cls(
        **{"n_atoms": 12, "window": 40, "n_components": 5, "alpha": 0.1, "lam": 0.01, "random_state": 0} | parameters
    )


@pytest.fixture(scope="module")
def model(film):
    return small().fit(film[:100])


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "film.psmt")
    return tmp_path / "film.psmt"


def contents(path):
    with np.load(path) as archive:
        return dict(archive)


def rewrite(path, *, header=None, drop=(), **arrays):
    """The same file with other entries."""
    parts = contents(path)
    found = json.loads(str(parts["header"])) | (header or {})
    parts = parts | {"header": np.array(json.dumps(found))} | arrays
    with open(path, "wb") as file:
        np.savez(file, **{name: value for name, value in parts.items() if name not in drop})


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cls=st.sampled_from([PSMT, Baseline1, Baseline2, CopyCode]),
    extrapolation=st.sampled_from(["linear", "hold", "gain"]),
    centred=st.booleans(),
    updates=st.integers(0, 50),
    further=st.integers(0, 50),
)
def test_a_loaded_model_goes_on_bit_for_bit(film, tmp_path, cls, extrapolation, centred, updates, further):
    model = small(cls, extrapolation=extrapolation, centred=centred).fit(film[:100])
    for x in film[100 : 100 + updates]:
        model.update(x)
    model.save(tmp_path / "m.psmt")
    loaded = cls.load(tmp_path / "m.psmt")
    assert type(loaded) is cls
    assert loaded.get_params() == model.get_params()
    assert loaded.predict(2).tobytes() == model.predict(2).tobytes()
    for x in film[150 : 150 + further]:
        model.update(x)
        loaded.update(x)
    assert loaded.predict(2).tobytes() == model.predict(2).tobytes()
    assert loaded.codes_.tobytes() == model.codes_.tobytes()


def test_the_choice_comes_back(film, tmp_path):
    model = small(n_components="auto", lam="auto").fit(film[:100])
    model.save(tmp_path / "m")
    loaded = PSMT.load(tmp_path / "m")
    assert loaded.choice_ == model.choice_
    assert (loaded.n_components_, loaded.lam_) == (model.n_components_, model.lam_)
    assert loaded.n_components == loaded.lam == "auto"


def test_a_given_coder_comes_back(film, tmp_path):
    coder = SparseCoder.from_dictionary(np.random.default_rng(0).standard_normal((12, 8)), alpha=0.2)
    model = small(coder=coder).fit(film[:100])
    model.save(tmp_path / "m")
    loaded = PSMT.load(tmp_path / "m")
    assert loaded.coder.get_params() == coder.get_params()
    assert loaded.predict().tobytes() == model.predict().tobytes()


def test_numpy_numbers_are_parameters_too(film, tmp_path):
    numbers = {"lam": np.float32(0.5), "window": np.int64(40), "random_state": np.random.RandomState(0)}
    for model in (small(**numbers), small(n_components=np.int64(5)), small(n_components=np.int32(5), lam="auto")):
        model.fit(film[:100]).save(tmp_path / "m")
        assert PSMT.load(tmp_path / "m").predict().tobytes() == model.predict().tobytes()


def test_all_directions_come_back(film, tmp_path):
    model = small(n_components=None).fit(film[:100])
    model.save(tmp_path / "m")
    loaded = PSMT.load(tmp_path / "m")
    assert loaded.n_components is loaded.n_components_ is None
    assert loaded.update(film[100]).predict().tobytes() == model.update(film[100]).predict().tobytes()


def test_the_name_is_taken_as_given(model, tmp_path):
    model.save(str(tmp_path / "no-suffix"))
    assert os.listdir(tmp_path) == ["no-suffix"]


# Whole or not at all


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def half_written(file, **arrays):
    file.write(b"PK half of it")
    full_disk()


@pytest.mark.parametrize(
    ("place", "failure"), [("numpy.savez_compressed", half_written), ("os.fsync", full_disk), ("os.replace", full_disk)]
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(model, tmp_path, monkeypatch, place, failure, exists):
    path = tmp_path / "film.psmt"
    if exists:
        model.save(path)
        before = path.read_bytes()
    monkeypatch.setattr(place, failure)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == (["film.psmt"] if exists else [])
    if exists:
        assert path.read_bytes() == before
        PSMT.load(path)


def test_a_missing_folder_is_named(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        model.save(tmp_path / "nowhere" / "m")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        PSMT.load(tmp_path / "nowhere")


# What is not a saved model


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_file(path, kept):
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(ModelFileError, match=r"film.psmt is not a saved model, or is damaged .* save the model again"):
        PSMT.load(path)


def test_flipped_bytes_are_noticed_or_harmless(model, path):
    data = bytearray(path.read_bytes())
    noticed = 0
    for at in np.linspace(0, len(data) - 1, 200).astype(int):
        damaged = data.copy()
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            predicted = PSMT.load(path).predict()
        except ModelFileError:
            noticed += 1
        else:  # dates and the like
            assert predicted.tobytes() == model.predict().tobytes()
    assert noticed > 150


class Trap:
    """A pickle of this creates a file when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (str(self.marker), "w"))


def written(save, *arrays, **options):
    """The bytes of a file that a function of NumPy writes."""
    file = BytesIO()
    save(file, *arrays, **options)
    return file.getvalue()


FOREIGN = {
    "npz": lambda marker: written(np.savez, np.ones(3)),
    "npy": lambda marker: written(np.save, np.ones(3)),
    "text": lambda marker: b"these are not the arrays you are looking for\n" * 10,
    "pickle": lambda marker: pickle.dumps(Trap(marker)),
    "object npy": lambda marker: written(np.save, np.array([Trap(marker)], dtype=object), allow_pickle=True),
    "empty": lambda marker: b"",
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files(tmp_path, content):
    path, marker = tmp_path / "foreign", tmp_path / "executed"
    path.write_bytes(content(marker))
    with pytest.raises(ModelFileError, match="foreign is not a saved"):
        PSMT.load(path)
    assert not marker.exists()
    with pytest.raises(ModelFileError, match="is not a saved"):
        PSMT.load(tmp_path)


@pytest.mark.parametrize("entry", ["header", "dictionary", "moments.codes"])
def test_a_pickle_inside_is_not_executed(path, tmp_path, entry):
    marker = tmp_path / "executed"
    parts = contents(path) | {entry: np.array([Trap(marker)], dtype=object)}
    with open(path, "wb") as file:
        np.savez(file, **parts)
    with pytest.raises(ModelFileError, match="allow_pickle=False"):
        PSMT.load(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header": {"version": 2}}, "has format version 2, but this psmt reads version 1; .* upgrade psmt"),
        ({"header": {"format": "other"}}, "is not a saved PSMT model"),
        ({"header": {"class": "Baseline2"}}, "holds a Baseline2, not a PSMT; use Baseline2.load"),
        ({"header": {"class": None}}, "not a PSMT"),
        ({"header": {"parameters": {"colour": 1}}}, "its parts do not fit together"),
        ({"header": {"parameters": {"window": -1}}}, "its parts do not fit together"),
        ({"header": {"parameters": {"extrapolation": "cubic"}}}, "its parts do not fit together"),
        ({"header": {"parameters": None}}, "its parts do not fit together"),
        ({"header": {"coder": {"colour": 1}}}, "its parts do not fit together"),
        ({"header": {"coder": {"alpha": "auto"}}}, "its parts do not fit together .*alpha='auto' is not a number"),
        ({"header": {"choice": {"n_components": 5, "lam": "much", "scores": []}}}, "its parts do not fit together"),
        ({"header": {"choice": {}}}, "its parts do not fit together"),
        ({"drop": ["dictionary"]}, "its parts do not fit together"),
        ({"drop": ["moments.products"]}, "its parts do not fit together"),
        ({"drop": ["header"]}, "is not a saved model"),
        ({"dictionary": np.ones((5, 8))}, r"embedding is float64 \(5, 12\), not float64 \(5, 5\)"),
        ({"dictionary": np.full((12, 8), np.nan)}, "its parts do not fit together"),
        ({"embedding": np.ones((5, 3))}, "its parts do not fit together"),
        ({"moments.codes": np.ones((40, 3))}, "its parts do not fit together"),
        ({"moments.codes": np.ones(12)}, "its parts do not fit together"),
        ({"moments.codes": np.ones((1, 12))}, "its parts do not fit together"),
        ({"moments.reverted": np.ones(3)}, "its parts do not fit together"),
        ({"moments.products": np.ones((12, 12), dtype="S1")}, "its parts do not fit together"),
        ({"moments.peak": np.ones(3)}, "peak is float64"),
        ({"embedding": np.full((5, 12), np.nan)}, "its parts do not fit together"),
    ],
)
def test_parts_that_do_not_fit(path, change, message):
    rewrite(path, **change)
    with pytest.raises(ModelFileError, match=message):
        PSMT.load(path)


def test_what_standardising_leaves_is_a_rounding_error(film, tmp_path):
    """A larger one would move every frame of the series out of range."""
    small(PSMT, standardise=True).fit(film[:100]).save(tmp_path / "m")
    rewrite(tmp_path / "m", **{"scaling.rest": np.full(film.shape[1], 1e36)})
    with pytest.raises(ModelFileError, match=r"scaling\.rest is larger than a rounding error"):
        PSMT.load(tmp_path / "m")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_numpy_never_packs_is_not_unpacked(path, method, monkeypatch):
    """A few bytes of bzip2 or lzma become gigabytes, whatever the header says; deflate cannot."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    monkeypatch.setattr(zipfile, "_get_decompressor", None)
    with pytest.raises(ModelFileError, match=r"packed by (bzip2|lzma), but arrays are stored plain or deflated"):
        PSMT.load(path)


def test_names_that_a_terminal_should_not_see_are_told_in_one_line(path):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a\nb\x1b[2J", b"")
    with pytest.raises(ModelFileError, match=r"the name 'a\\nb\\x1b\[2J'") as caught:
        PSMT.load(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "value", ["x" * 100_000, "\x1b[31mred\n", "\u202e", "\ud800"], ids=["long", "red", "bidi", "half"]
)
@pytest.mark.parametrize("where", ["extrapolation", "on_cut", "class", "version", "unknown"])
def test_values_in_a_header_are_printable_and_short(path, where, value):
    found = json.loads(str(contents(path)["header"]))
    change = (
        {"parameters": found["parameters"] | {where: value}} if where in ("extrapolation", "on_cut") else {where: value}
    )
    rewrite(path, header=change if where != "unknown" else {value: 1})
    with pytest.raises(ModelFileError) as raised:
        PSMT.load(path)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) <= 1000


def test_characters_that_unicode_does_not_have(path):
    """Python raises SystemError where it handles such a text."""
    parts = contents(path)
    points = np.array([str(parts["header"]).replace("lam", "l\U0010ffffm")]).view("u4")
    points[points == 0x10FFFF] += 1
    with open(path, "wb") as file:
        np.savez(file, **parts | {"header": points.view(f"U{len(points)}").reshape(())})
    with pytest.raises(ModelFileError, match="characters that Unicode does not have"):
        PSMT.load(path)


@pytest.mark.parametrize("name", [3, "a\nb", "PSMT "])
def test_a_class_that_is_no_name_is_told_in_one_line(path, name):
    rewrite(path, header={"class": name})
    with pytest.raises(ModelFileError, match="not a PSMT") as caught:
        PSMT.load(path)
    assert str(caught.value).isprintable()


def test_the_class_of_a_file_is_read_from_its_header(film, tmp_path):
    for cls in (PSMT, Baseline2):
        small(cls).fit(film[:100]).save(tmp_path / "m")
        assert type(load_model(tmp_path / "m")) is type(load_model(tmp_path / "m", PSMT, Baseline2)) is cls
    with pytest.raises(ModelFileError, match=r"m holds a Baseline2, not a PSMT or CopyCode; use Baseline2.load"):
        load_model(tmp_path / "m", PSMT, CopyCode)
    rewrite(tmp_path / "m", header={"class": "Unknown"})
    with pytest.raises(ModelFileError, match="holds a Unknown"):
        load_model(tmp_path / "m")


def test_a_device_that_is_missing_is_not_the_fault_of_the_file(path):
    with pytest.raises(DeviceError, match="abacus"):
        PSMT.load(path, device="abacus")


def test_a_pipe_is_no_model_and_nobody_waits_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.psmt")
    with pytest.raises(ModelFileError, match=r"pipe.psmt is not a saved model.*a pipe or a device"):
        PSMT.load(tmp_path / "pipe.psmt")


def test_a_file_takes_the_place_of_nothing_but_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, why in ((tmp_path / "pipe", "a device or a pipe"), (tmp_path, "a folder")):
        with pytest.raises(OSError, match=f"{why}; give the name of a file") as raised, writing(path):
            pass
        assert raised.value.filename == str(path)
    assert os.listdir(tmp_path) == ["pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("name", ["no/such/model", "file/model", "x" * 300])
def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as raised, writing(tmp_path / name):
        pass
    assert raised.value.filename == str(tmp_path / name)
