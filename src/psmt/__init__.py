"""Predictive Sparse Manifold Transform: learn the dynamics of natural scenes, predict what comes next.

    frames -> patches -> codes -> moments -> embedding -> extrapolation -> recovery -> predicted patch

- `PSMT`: Algorithm 1 of the paper, on any array (time, features); `PSMT.for_series` for series other than films.
- `FramePSMT`: whole frames (time, height, width), predicted as the last frame plus a change.
- `SparseCoder` and `TemporalEmbedding`: the two layers of `PSMT`; each can be used by itself.
- `read_patches`, `open_frames`: films, images, arrays, cameras and streams, as patches or as frames.
- `datasets`: built-in films, simulated brains, and your own files; `plot`: pictures of models and results.
- `live`: predictions beside a camera or film, in a notebook; `psmt live` on the command line.

    >>> from psmt import PSMT, read_patches
    >>> X = read_patches("builtin:glide?frames=400&seed=3").values  # or "film.mp4": (time, 256)
    >>> model = PSMT(n_atoms=48, window=160, random_state=0).fit(X[:350])
    >>> model.update(X[350]).predict().shape
    (256,)

`make docs` builds the site: tutorials, how-to guides, and the reference of all public names.
"""

# Nothing is imported here: an interruption during a long import would print a traceback before `psmt` can handle it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from psmt import datasets as datasets
    from psmt import plot as plot
    from psmt.coding import SparseCoder
    from psmt.data import open_frames
    from psmt.data.patches import read_patches
    from psmt.embedding import TemporalEmbedding
    from psmt.live.notebook import live
    from psmt.model import PSMT
    from psmt.video.model import FramePSMT

__all__ = [
    "PSMT",
    "FramePSMT",
    "SparseCoder",
    "TemporalEmbedding",
    "datasets",
    "live",
    "open_frames",
    "plot",
    "read_patches",
]

__version__ = "0.3.0"

_HOMES = {
    "FramePSMT": "psmt.video.model",
    "PSMT": "psmt.model",
    "SparseCoder": "psmt.coding",
    "TemporalEmbedding": "psmt.embedding",
    "open_frames": "psmt.data",
    "read_patches": "psmt.data.patches",
}


def __getattr__(name: str) -> "Any":
    """Import on first use, so that `psmt --help` need not wait for numba and scikit-learn."""
    from importlib import import_module

    if name in ("datasets", "live", "plot"):  # `live` is a package that can be called
        return import_module(f"psmt.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'psmt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
