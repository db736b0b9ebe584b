"""The whole model on each engine, and what is said of devices that are not there."""

import sys
from copy import deepcopy

import numpy as np
import pytest

from made_up_series import wave
from psmt import PSMT, SparseCoder
from psmt.engines import engine_for, engine_name
from psmt.errors import DeviceError

GIVEN = {"n_atoms": 16, "window": 60, "alpha": 0.1, "n_components": 6, "lam": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def film():
    return wave(100)


@pytest.mark.parametrize("extrapolation", ["linear", "gain", "dynamics"])
def test_predictions_are_those_of_the_cpu(engine, film, extrapolation):
    own = PSMT(**GIVEN, extrapolation=extrapolation, device=engine.device).fit(film[:80])
    reference = PSMT(**GIVEN, extrapolation=extrapolation).fit(film[:80])
    for x in film[80:84]:
        np.testing.assert_allclose(own.update(x).predict(), reference.update(x).predict(), atol=1e-6)
    np.testing.assert_allclose(own.predict(3), reference.predict(3), atol=1e-6)
    np.testing.assert_allclose(own.embedding_, reference.embedding_, atol=1e-5)


@pytest.mark.parametrize("extrapolation", ["gain", "dynamics"])
def test_several_series_are_those_of_the_cpu(engine, film, extrapolation):
    given = GIVEN | {"extrapolation": extrapolation, "standardise": True}
    own, reference = (
        PSMT(**given, device=device).fit(film[:80], lengths=[30, 50]) for device in (engine.device, "cpu")
    )
    for model in (own, reference):
        for x in film[80:98]:  # the seam moves through the window
            model.update(x)
    np.testing.assert_allclose(own.predict(3), reference.predict(3), atol=1e-6)
    np.testing.assert_array_equal(own.moments_.begins, reference.moments_.begins)
    for model in (own, reference):
        model.begin(film[10:40])
    np.testing.assert_allclose(own.predict(2), reference.predict(2), atol=1e-6)
    numpy = own._engine.numpy
    np.testing.assert_allclose(
        numpy(own.moments_.second_differences()), reference.moments_.second_differences(), atol=1e-6
    )


def test_a_copy_goes_on_alike(engine, film):
    model = PSMT(**GIVEN, device=engine.device).fit(film[:80])
    copy = deepcopy(model)
    np.testing.assert_allclose(model.update(film[80]).predict(), copy.update(film[80]).predict(), atol=1e-12)


def test_a_saved_model_knows_of_no_device(engine, film, tmp_path):
    model = PSMT(**GIVEN, device=engine.device).fit(film[:80])
    model.save(tmp_path / "own")
    PSMT(**GIVEN).fit(film[:80]).save(tmp_path / "reference")
    with np.load(tmp_path / "own") as own, np.load(tmp_path / "reference") as reference:
        assert str(own["header"]) == str(reference["header"])
        assert {name: own[name].shape for name in own} == {name: reference[name].shape for name in reference}
    for device in ("cpu", engine.device):
        np.testing.assert_allclose(PSMT.load(tmp_path / "own", device=device).predict(), model.predict(), atol=1e-9)


def test_a_fitted_coder_comes_from_any_device(engine, film):
    coder = SparseCoder(n_atoms=16, alpha=0.1, random_state=0).fit(film)
    model = PSMT(**GIVEN, coder=coder, device=engine.device).fit(film[:80])
    np.testing.assert_array_equal(model.dictionary_, coder.dictionary_)
    assert coder.device == "cpu"


@pytest.mark.parametrize("device", ["torch:cpu", "cuda"])
def test_single_precision(device, film, tmp_path):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    own = PSMT(**GIVEN, device=device, dtype="float32").fit(film[:80])
    reference = PSMT(**GIVEN).fit(film[:80])
    for x in film[80:84]:
        expected = reference.update(x).predict()
        assert np.linalg.norm(own.update(x).predict() - expected) < 1e-2 * np.linalg.norm(expected)
    assert own.coder_.dtype == "float32"
    own.save(tmp_path / "own")
    again = PSMT.load(tmp_path / "own", device=device, dtype="float32")
    np.testing.assert_allclose(again.predict(), own.predict(), atol=1e-6)
    np.testing.assert_allclose(PSMT.load(tmp_path / "own").predict(), own.predict(), atol=1e-2)


def test_an_engine_has_one_name(engine):
    assert engine_for(engine_name(engine.device)) is engine_for(engine.device)
    assert engine_name("cuda:1", "float32") == "cuda:1/float32"


@pytest.mark.parametrize("model", [PSMT, SparseCoder])
def test_single_precision_is_for_gpus(model):
    with pytest.raises(DeviceError, match="dtype='float32' is for GPUs; device='cpu' computes in 'float64'"):
        model(dtype="float32").fit(np.zeros((10, 2)))
    with pytest.raises(DeviceError, match="dtype='half' is not known; use 'float64', or 'float32' on a GPU"):
        model(dtype="half").fit(np.zeros((10, 2)))


def test_unknown_devices():
    with pytest.raises(DeviceError, match="device='gpu' is not known; use 'cpu', or 'cuda' for a GPU"):
        PSMT(device="gpu").fit(np.zeros((10, 2)))


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DeviceError, match=r"pip install 'psmt\[gpu\]', or use device='cpu'"):
        engine_for.__wrapped__("cuda")


def test_without_the_gpu():
    torch = pytest.importorskip("torch")
    with pytest.raises(DeviceError, match=r"device='cuda:99' is not available.*use device='cpu'"):
        engine_for("cuda:99")
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match="sees 0 CUDA GPUs"):
            engine_for("cuda")
