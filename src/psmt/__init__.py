"""Predictive Sparse Manifold Transform: learn the dynamics of natural scenes, predict what comes next.

    frames -> patches -> codes -> moments -> embedding -> extrapolation -> recovery -> predicted patch

- `PSMT`: Algorithm 1 of the paper, on any array (time, features); `PSMT.for_series` for series other than films.
- `FramePredictor`: whole frames (time, height, width). It is not part of the paper and does not use `PSMT`.
- `SparseCoder` and `TemporalEmbedding`: the two layers of `PSMT`, for separate use.
- `read_patches`, `open_frames`: films, images, arrays, cameras and streams, as patches or as frames.
- `brain`: networks and states of a group of brains, from series of regions; `psmt brain` on the command line.
- `datasets`: built-in films, simulated brains, and your own files. `plot`: plots of models and results.
- `surprise`: a detector of unexpected frames, for a film or a camera.

    >>> from psmt import PSMT, read_patches
    >>> X = read_patches("builtin:glide?frames=400&seed=3").values  # or "film.mp4": (time, 256)
    >>> model = PSMT(n_atoms=48, window=160, random_state=0).fit(X[:350])
    >>> model.update(X[350]).predict().shape
    (256,)

`help(psmt.PSMT)` describes a class. `make docs` builds the site with tutorials, how-to guides and the reference.
"""

# Nothing is imported here, because an interruption during a long import would print a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psmt import brain as brain
    from psmt import datasets as datasets
    from psmt import plot as plot
    from psmt import surprise as surprise
    from psmt.coding import SparseCoder
    from psmt.data import open_frames
    from psmt.data.patches import read_patches
    from psmt.embedding import TemporalEmbedding
    from psmt.model import PSMT
    from psmt.video.model import FramePredictor

__all__ = [
    "PSMT",
    "FramePredictor",
    "SparseCoder",
    "TemporalEmbedding",
    "brain",
    "datasets",
    "open_frames",
    "plot",
    "read_patches",
    "surprise",
]

_PUBLIC = __all__
del __all__  # `__getattr__` returns it, but not to pydoc, whose help(psmt) would describe each class on many pages

__version__ = "0.3.0"

_HOMES = {
    "FramePredictor": "psmt.video.model",
    "PSMT": "psmt.model",
    "SparseCoder": "psmt.coding",
    "TemporalEmbedding": "psmt.embedding",
    "open_frames": "psmt.data",
    "read_patches": "psmt.data.patches",
}


def __getattr__(name: str) -> "Any":
    """Import a public name on first use. So `psmt --help` does not wait for numba and scikit-learn to load."""
    from importlib import import_module

    if name == "__all__":
        from sys import _getframe

        if _getframe(1).f_globals.get("__name__") != "pydoc":
            return _PUBLIC
    if name in ("brain", "datasets", "plot", "surprise"):
        return import_module(f"psmt.{name}")
    if name == "FramePSMT":
        from warnings import warn

        warn("FramePSMT is called FramePredictor now; the old name goes with 0.4", FutureWarning, stacklevel=2)
        name = "FramePredictor"
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'psmt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_PUBLIC, "__doc__", "__version__"]
