"""Declarations of states: what is saved is declared, what is declared is saved, and what departs from it is named."""

import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import psmt
from fuzz.saved_models import KINDS, saved, use, write
from psmt import PSMT, FramePredictor, SparseCoder
from psmt.errors import ModelFileError
from psmt.persistence.schema import Field, SchemaError, check_state, under


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_declared_and_what_is_declared_is_saved(kind):
    cls, header, parts = saved(kind)
    own = {key: value for key, value in header.items() if key not in ("format", "version", "class")}
    schema = cls.stored_schema(own, parts)
    assert set(schema) == set(parts)
    check_state(schema, parts)


@pytest.mark.parametrize("cls", [PSMT, FramePredictor, SparseCoder])
def test_every_parameter_declares_its_constraint(cls):
    """But for where to compute and the coder, which no file has, and a name that goes."""
    asked = set(cls().get_params(deep=False)) - {"device", "dtype", "coder"}
    assert asked == set(cls._parameter_constraints)


def test_a_field_that_is_not_declared_cannot_be_saved(tmp_path, monkeypatch):
    model = KINDS["linear"]()
    state = model.get_state
    monkeypatch.setattr(model, "get_state", lambda: state() | {"novelty": np.ones(3)})
    with pytest.raises(ModelFileError, match="cannot be saved, because novelty is not a part"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_as_it_should_be_is_read(tmp_path, kind):
    _, header, parts = saved(kind)
    write(tmp_path / "m", json.dumps(header), parts)
    use(kind, tmp_path / "m")


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        (Field((2,)), np.ones(3), r"x is float64 \(3,\), not float64 \(2,\)"),
        (Field((2,)), np.ones(2, np.float32), "x is float32"),
        (Field(("n",)), np.ones(0), "without any n"),
        (Field((2,), low=0.0), np.array([0.0, -1e-9]), "below 0"),
        (Field((2,), high=(1.0, 5.0)), np.array([2.0, 2.0]), r"above \(1, 5\)"),
        (Field((2,)), np.array([1.0, np.nan]), "not finite"),
        (Field((2,)), np.array([1.0, 1e40]), r"above 1e\+36"),
        (Field((2,), "complex64"), np.array([1.0, 1e20j], np.complex64), r"above 1e\+16"),
    ],
)
def test_what_departs_is_named(field, value, why):
    with pytest.raises(SchemaError, match=why):
        check_state({"x": field}, {"x": value})


def test_groups_are_all_there_or_all_missing():
    schema = under("new.", {"a": Field(()), "b": Field(())}, group="new") | {"old": Field(())}
    check_state(schema, {"old": np.array(1.0)})
    with pytest.raises(SchemaError, match=r"new\.b is missing"):
        check_state(schema, {"old": np.array(1.0), "new.a": np.array(1.0)})


# What broke before


def test_a_frame_of_another_shape_reaches_no_kernel(tmp_path):
    _, header, parts = saved("frames phase")
    write(tmp_path / "m", json.dumps(header), parts | {"current": np.zeros((4, 1_000_000), np.float32)})
    with pytest.raises(ModelFileError, match="is damaged: its parts do not fit together"):
        FramePredictor.load(tmp_path / "m")


@pytest.mark.parametrize("kind", ["linear", "frames phase"])
def test_a_shape_that_the_file_cannot_hold_is_refused_without_allocating(tmp_path, kind):
    cls, header, parts = saved(kind)
    name = "current" if cls is FramePredictor else "dictionary"
    path = tmp_path / "m"
    write(path, json.dumps(header), {key: value for key, value in parts.items() if key != name})
    text = f"{{'descr': '{parts[name].dtype.str}', 'fortran_order': False, 'shape': (20000, 20000), }}".encode()
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(9999))
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=rf"{name} says that it is float.* cannot hold more"):
            cls.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [("coder", "alpha", "linear"), ("parameters", "lam", -1), ("parameters", "centred", 3), ("choice", "lam", -1.0)],
)
def test_values_of_the_header_are_held_against_the_constraints(tmp_path, part, key, value):
    _, header, parts = saved("linear")
    write(tmp_path / "m", json.dumps(header | {part: header[part] | {key: value}}), parts)
    with pytest.raises(ModelFileError, match=rf"header\.{part}\.{key}={value!r}"):
        PSMT.load(tmp_path / "m")


@pytest.mark.parametrize("name", ["products", "curvature", "total"])
def test_sums_that_are_not_those_of_the_codes_are_refused(tmp_path, name):
    _, header, parts = saved("linear")
    write(tmp_path / "m", json.dumps(header), parts | {f"moments.{name}": 1.01 * parts[f"moments.{name}"]})
    with pytest.raises(ModelFileError, match=rf"moments\.{name} differs"):
        PSMT.load(tmp_path / "m")


def test_files_of_the_old_name_load_and_the_old_name_warns(tmp_path):
    _, header, parts = saved("frames phase")
    write(tmp_path / "m", json.dumps(header | {"class": "FramePSMT"}), parts)
    assert type(FramePredictor.load(tmp_path / "m")) is FramePredictor
    with pytest.warns(FutureWarning, match="FramePredictor"):
        assert psmt.FramePSMT is FramePredictor


def test_half_stencils_are_for_one_series(tmp_path):
    """The window of this file has the seam between two series, where the paper's D has no half stencil."""
    _, header, parts = saved("series")
    header["parameters"]["half_stencils"] = True
    write(tmp_path / "m", json.dumps(header), parts)
    with pytest.raises(ModelFileError, match="half_stencils=True is for one series"):
        PSMT.load(tmp_path / "m")


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    """And the error is one that psmt documents, which the live page catches."""
    model = KINDS["linear"]()
    model._residual = model._residual * np.nan
    with pytest.raises(ModelFileError, match="rest has a number that is not finite"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
