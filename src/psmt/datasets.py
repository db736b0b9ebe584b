"""Example data whose true motion or states are known, and a loader for your own data.

============  ===================================================  ========================
function      data                                                 known truth
============  ===================================================  ========================
`load_glide`  patches of a film: a camera glides over leaves       the motion of the camera
`load_bold`   a simulated scan of a resting brain                  the state of each volume
`load`        your own films, folders, arrays and tables           none
============  ===================================================  ========================

Each function returns a `Dataset` whose ``X`` (time, features) is the input of a model. Nothing is downloaded.

**Your own data.** `load` takes the path of a film (mp4, mov, mkv, ...), of a folder of images or of a TIFF stack, and
cuts standardised patches. It also takes a series: a ``.csv`` or ``.tsv`` table (one line per time point, one column per
feature), a ``.mat`` file, a pandas data frame or an array ``(time, features)``. A series is not scaled, because
`PSMT.for_series` does that. `psmt.series.join_series` joins several subjects or sessions. Read files of other kinds
into an array first, or add a reader (see "A source" in CONTRIBUTING.md).

>>> import numpy as np
>>> data = load(np.random.default_rng(0).standard_normal((300, 31)))
>>> data.X.shape, data.picture_shape
((300, 31), None)
"""

from dataclasses import dataclass, field
from typing import Any

from psmt.data import BoldSimulation, FrameSource, GlideFilm, SeriesSource, Spec, open_source
from psmt.data.patches import read_values
from psmt.types import Array

__all__ = ["Dataset", "load", "load_bold", "load_glide"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A series to learn from, with its names, its source and its true motion or states.

    Attributes
    ----------
    name : str
        Name in plots and reports.
    X : ndarray (time, features)
        Standardised patches of a film, or a series that is not scaled.
    picture_shape : tuple of int, or None
        Height and width of the patches, for the parameter ``shape`` of `psmt.plot`. None for a series.
    feature_names : tuple of str, or None
        Names of the features, if the source has them.
    truth : object
        The motion of the camera (`GlideMotion`) or the true states ``(time,)``. None if they are unknown.
    source : FrameSource or SeriesSource
        The opened source. Most films can be indexed, as in ``data.source[7]``.
    """

    name: str
    X: Array = field(repr=False)
    picture_shape: tuple[int, int] | None
    feature_names: tuple[str, ...] | None = field(repr=False)
    truth: Any = field(repr=False)
    source: FrameSource | SeriesSource = field(repr=False)

    def __len__(self) -> int:
        return len(self.X)


def load(
    source: Spec,
    *,
    stop: int | None = None,
    frame_size: int | None = 200,
    patch_size: int = 16,
    position: tuple[int, int] | None = None,
) -> Dataset:
    """Return the patches of a film, or a series, as a `Dataset`. `psmt.datasets` lists the kinds of data.

    `FrameSourceError` is raised if the source cannot be read or has fewer frames than ``stop``.

    Parameters
    ----------
    source : path, str, array, data frame, FrameSource or SeriesSource
        Anything that `psmt.data.open_source` takes, for example ``"builtin:glide?frames=2000&seed=1"``.
    stop : int, optional
        Number of frames to read. None reads all.
    frame_size, patch_size, position
        Size of the frame, and size and place of the patch, as in `psmt.data.patches.PatchCutter`. Ignored for a series.

    Examples
    --------
    >>> data = load("builtin:glide?frames=30", patch_size=12)
    >>> data.X.shape, data.picture_shape, data.truth.speed.shape
    ((30, 144), (12, 12), (30,))
    """
    opened = open_source(source, stop=stop)
    X = read_values(opened, frame_size=frame_size, patch_size=patch_size, position=position, stop=stop)
    own: dict[str, Any] = {"picture_shape": (patch_size, patch_size), "feature_names": None, "truth": None}
    if isinstance(opened, SeriesSource):
        own = {"picture_shape": None, "feature_names": opened.feature_names, "truth": opened.truth}
    elif isinstance(opened, GlideFilm):
        own["truth"] = opened.motion()
    return Dataset(name=opened.name, X=X, source=opened, **own)


def load_glide(
    n_frames: int = 2_000, *, seed: int = 0, speed: float | None = None, noise: float = 0.0, patch_size: int = 16
) -> Dataset:
    """Return patches ``(n_frames, patch_size**2)`` of the built-in film, and the motion of its camera.

    The parameters are those of `psmt.data.GlideFilm`. Frames are as small as the patch, to be computed fast.

    >>> data = load_glide(50, speed=0.5, patch_size=8)
    >>> data.X.shape, float(data.truth.speed.mean().round(2))
    ((50, 64), 0.5)
    """
    film = GlideFilm(n_frames=n_frames, seed=seed, speed=speed, noise=noise, size=max(patch_size, 8))
    return load(film, frame_size=None, patch_size=patch_size)


def load_bold(n_frames: int = 600, *, subject: int = 0, **simulation: Any) -> Dataset:
    """Return the simulated scan ``(n_frames, n_regions)`` of one subject, and the state of each volume.

    Further parameters are those of `psmt.data.BoldSimulation`: ``n_regions``, ``noise``, ``tr``, ``seed``, ..

    >>> data = load_bold(120, n_regions=20)
    >>> data.X.shape, data.truth.shape
    ((120, 20), (120,))
    """
    simulation.setdefault("n_subjects", subject + 1)
    return load(BoldSimulation(n_frames=n_frames, **simulation).subject(subject))
