"""Films, code sequences and results that the tests share. Fixtures import what they need, as in `../conftest.py`."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_terminal_summary(terminalreporter):
    """Name the tests that were left out: with -q pytest does not."""
    if not (shutil.which("chromium") and find_spec("playwright")):
        terminalreporter.write_line(
            "psmt live was not tested in a browser: that needs chromium (apt install chromium) and the extra dev"
        )


FIRST = (
    "test_lasso",
    "engines/test_frame_kernels",
    "model/test_model",
    "embedding/test_followed",
    "experiments/brain/test_command",
    "model/test_interrupts",
    "live/test_session",
    "cli/test_reproduce",
    "experiments/topology/test_verdicts",
    "experiments/prediction/test_known_truth",
    "live/test_limits",
    "live/test_browser",
    "cli/test_predict",
    "video/test_model",
    "experiments/brain/test_exports",
    "fuzz/test_fuzz",
    "test_recipes",
)
"""Files of tests that begin.

The first two compile most kernels, each others. The next three need none of those of whole frames, which take longer to
compile; the last of them compiles those of brains. Then come the files that take longest.
"""


def pytest_collection_modifyitems(items):
    """Two workers neither compile the same kernels nor wait for each other at the end. Studies take longest."""
    folder = Path(__file__).parent
    rank = {folder / f"{name}.py": k for k, name in enumerate(FIRST)}
    items.sort(key=lambda item: rank.get(item.path, len(FIRST) + ("studies" not in item.path.parts)))


@pytest.fixture(scope="module")
def blank_figures():
    """Files of figures have no ink: for tests of whole commands. What is drawn is tested with each figure."""
    from matplotlib.figure import Figure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "draw", lambda *_: None)
        yield


@pytest.fixture(scope="session", params=["cpu", *(["torch:cpu", "cuda"] if find_spec("torch") else [])])
def engine(request):
    """Each engine that is installed and has its device."""
    from psmt.engines import engine_for

    if request.param in ("torch:cpu", "cuda"):
        torch = pytest.importorskip("torch")
        torch.set_num_threads(1)
        if request.param == "cuda" and not torch.cuda.is_available():
            pytest.skip("there is no GPU")
    return engine_for(request.param)


@pytest.fixture(scope="session")
def operations(engine):
    """What each engine does, with NumPy arrays in and out."""
    from in_numpy import operations_on

    return operations_on(engine)


@pytest.fixture(scope="session")
def glide():
    """Standardised 6 x 6 patches (420, 36) of the built-in film, a little noisy, so that every code moves."""
    from psmt import read_patches

    return read_patches("builtin:glide?frames=420&speed=0.3&noise=0.2&size=48", frame_size=48, patch_size=6).values


@pytest.fixture(scope="session")
def film():
    """The smooth film (260, 8)."""
    from made_up_series import wave

    return wave(260)


@pytest.fixture
def make_result():
    """Results of a phase with made-up predictions: figures and reports need no model."""
    import numpy as np

    from psmt.evaluation import METHODS, Score, mse
    from psmt.experiments.phases import FilmPhase
    from psmt.experiments.prediction.phase import PhaseResult

    def make(name: str = "calm", *, start: int = 1_000, horizon: int = 30, side: int = 6, seed: int = 0) -> PhaseResult:
        rng = np.random.default_rng(seed)
        frames, estimates = rng.standard_normal((2, horizon, side * side))
        scores = {}
        for i, method in enumerate(METHODS):
            predicted = estimates + 0.1 * (i + 1) * rng.standard_normal(frames.shape)
            vs_code, vs_frame = mse(predicted, estimates), mse(predicted, frames)
            scores[method] = Score(predicted, vs_code, vs_frame)
        return PhaseResult(FilmPhase(name, start), 64, 0.3, frames, estimates, scores, scores, (side, side))

    return make
