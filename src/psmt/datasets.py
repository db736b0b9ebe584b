"""Data to try things on, with its truth where it is known; and how to bring one's own.

=============  =============================================================  ========================
`load_glide`   a camera gliding over fallen leaves: patches of natural looks  the camera's motion
`load_shapes`  discs, squares and bars that move straight on and turn         centres and angles
`load_bold`    a simulated scan of a resting brain, in scanner units          the state of each volume
`load`         films, folders, arrays, tables: **your own**                   none
=============  =============================================================  ========================

Each gives a `Dataset`: ``X`` (time, features), what a model is fitted to. Nothing is downloaded.

**Bring your own.** `load` takes the path of a film (mp4, mov, mkv, ..), of a folder of images or of a TIFF stack, and
makes standardised patches of it; it takes a ``.csv`` or ``.tsv`` table (a line per moment, a column per feature), a
``.mat`` file, a pandas data frame or an array ``(time, features)`` as a series, which is left as it is
(`PSMT.for_series` scales it). Several subjects or sessions are joined by `psmt.series.join_series`. A kind of file that
nobody here knows: read it into an array, or see "A source" in CONTRIBUTING.md.

>>> import numpy as np
>>> data = load(np.random.default_rng(0).standard_normal((300, 31)))
>>> data.X.shape, data.picture_shape
((300, 31), None)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from psmt.data import BoldSimulation, FrameSource, GlideFilm, MovingShapes, SeriesSource, Spec, open_source
from psmt.data.patches import read_values
from psmt.data.synthetic.brain import BOLD
from psmt.errors import FrameSourceError
from psmt.types import Array

__all__ = ["Dataset", "load", "load_bold", "load_glide", "load_shapes"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """A series to learn from, and what is known of it.

    Attributes
    ----------
    name : str
        A short name for people.
    X : ndarray (time, features)
        Standardised patches of a film, or a series as it is.
    picture_shape : tuple of int, or None
        Height and width of the picture that the features are the pixels of; None for a series, whose features have no
        places. What `psmt.plot` takes as ``shape``.
    feature_names : tuple of str, or None
        What features are called, where the source says it.
    truth : object
        What the data was made from, None where nobody knows: `GlideMotion`, `ShapesMotion` or states ``(time,)``.
    source : FrameSource or SeriesSource
        What was read: films by index, ``data.source[7]``, where they can be.
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
    """Return what a model learns from: patches of a film, or a series as it stands; see the module's "Bring your own".

    Parameters
    ----------
    source : path, str, array, data frame, FrameSource or SeriesSource
        Anything `psmt.data.open_source` takes, ``"builtin:glide?frames=2000&seed=1"`` among it.
    stop : int, optional
        Read no frame from this index on.
    frame_size, patch_size, position
        Where the patch of a film is cut, as for `psmt.data.patches.PatchCutter`; a series has no use for them.

    Raises
    ------
    FrameSourceError
        When the source cannot be read, or is shorter than ``stop``.

    Examples
    --------
    >>> data = load("builtin:shapes?frames=30", frame_size=None, patch_size=12)
    >>> data.X.shape, data.picture_shape, data.truth.row.shape
    ((30, 144), (12, 12), (30, 3))
    """
    if isinstance(source, str) and BOLD.matches(source):
        scans = BOLD.parse(source)
        return _of_scan(scans, scans.n_frames if stop is None else stop)
    opened = open_source(source, stop=stop)
    X = read_values(opened, frame_size=frame_size, patch_size=patch_size, position=position, stop=stop)
    pictures = isinstance(opened, FrameSource)
    return Dataset(
        name=opened.name,
        X=X,
        picture_shape=(patch_size, patch_size) if pictures else None,
        feature_names=opened.feature_names if isinstance(opened, SeriesSource) else None,
        truth=opened.motion() if isinstance(opened, GlideFilm | MovingShapes) else None,
        source=opened,
    )


def load_glide(
    n_frames: int = 2_000,
    *,
    seed: int = 0,
    speed: float | None = None,
    noise: float = 0.0,
    patch_size: int = 16,
) -> Dataset:
    """Return patches ``(n_frames, patch_size**2)`` of the built-in film, and the motion of its camera.

    Parameters as for `psmt.data.GlideFilm`; its frames are as large as the patch, which is what makes it quick.

    >>> data = load_glide(50, speed=0.5, patch_size=8)
    >>> data.X.shape, float(data.truth.speed.mean().round(2))
    ((50, 64), 0.5)
    """
    film = GlideFilm(n_frames=n_frames, seed=seed, speed=speed, noise=noise, size=max(patch_size, 8))
    return load(film, frame_size=None, patch_size=patch_size)


def load_shapes(
    n_frames: int = 1_000,
    *,
    seed: int = 0,
    n_shapes: int = 3,
    speed: float = 0.5,
    noise: float = 0.0,
    size: int = 16,
) -> Dataset:
    """Return whole frames ``(n_frames, size**2)`` of moving shapes, standardised, and where each shape was.

    Parameters as for `psmt.data.MovingShapes`.

    >>> load_shapes(40, size=12).X.shape
    (40, 144)
    """
    film = MovingShapes(n_frames=n_frames, seed=seed, n_shapes=n_shapes, speed=speed, noise=noise, size=size)
    return load(film, frame_size=None, patch_size=size)


def load_bold(n_frames: int = 600, *, subject: int = 0, **simulation: Any) -> Dataset:
    """Return the simulated scan ``(n_frames, n_regions)`` of one person, and the state of each volume.

    What else is simulated is as in `psmt.data.BoldSimulation`: ``n_regions``, ``noise``, ``tr``, ``seed``, ..

    >>> data = load_bold(120, n_regions=20)
    >>> data.X.shape, data.truth.shape
    ((120, 20), (120,))
    """
    simulation.setdefault("n_subjects", subject + 1)
    return _of_scan(BoldSimulation(n_frames=n_frames, **simulation), n_frames, subject)


def _of_scan(scans: BoldSimulation, n_frames: int, subject: int = 0) -> Dataset:
    if n_frames > scans.n_frames:
        raise FrameSourceError(f"the scan has {scans.n_frames} volumes, too few for stop={n_frames}; simulate more")
    scan = scans.subject(subject).head(n_frames)
    return Dataset(
        name=scan.name,
        X=scan.values,
        picture_shape=None,
        feature_names=scan.feature_names,
        truth=scans.states(subject)[:n_frames],
        source=scan,
    )
