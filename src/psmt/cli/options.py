"""Options of the commands: each means the same in all that have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from psmt.errors import PSMTError

if TYPE_CHECKING:
    from psmt.experiments.plan import ReconstructionSettings, ReproduceSettings
    from psmt.experiments.predict_video import VideoSettings
    from psmt.experiments.sweep import SweepSettings
    from psmt.experiments.topology import TopologySettings

QUICK_FRAMES = 2000
"""Frames that --quick looks at, at the most."""

DEFAULT_LAM = 0.1
"""λ of the sweep and the reconstruction, where no past can be held against a future to choose it."""

_AUTO: dict[str, Any] = {"show_choices": False}


def _row_column(type_: Any, tokens: Sequence[Any]) -> tuple[int, int]:
    try:
        row, column = map(int, tokens[0].value.split(","))
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not ROW,COLUMN; write two whole numbers, as in 92,92") from None
    return row, column


Components = Annotated[
    Literal["auto"] | int,
    Parameter(
        help="f: dimension of the embedding; auto chooses by predicting the end of the past.",
        metavar="auto|INT",
        **_AUTO,
    ),
]
QuarterComponents = Annotated[
    Literal["auto"] | int,
    Parameter(help="f: dimension of the embedding; auto is a quarter of the atoms.", metavar="auto|INT", **_AUTO),
]
Lam = Annotated[
    Literal["auto"] | float,
    Parameter(help="λ: price of activity in step 7, recovery; auto as above.", metavar="auto|FLOAT", **_AUTO),
]
FixedLam = Annotated[
    Literal["auto"] | float,
    Parameter(help=f"λ: price of activity in step 7, recovery; auto is {DEFAULT_LAM}.", metavar="auto|FLOAT", **_AUTO),
]
Start = Annotated[
    tuple[int, ...],
    Parameter(
        help="T: frame to start from; may be repeated. Left out: a calm and a lively phase are searched.",
        metavar="INT",
        negative=(),
        show_default=False,
    ),
]
Horizon = Annotated[int, Parameter(help="K: how many frames are predicted after each start.")]
Out = Annotated[Path, Parameter(help="Folder for the files; made if it is not there.")]


@dataclass(frozen=True, kw_only=True)
class FilmOptions:
    """What all commands take: layer 1, the seed, the device, and how much of the film."""

    alpha: Annotated[float, Parameter(help="α: price of activity in layer 1, sparse coding.")] = 1.0
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0
    device: Annotated[str, Parameter(help="Where to compute: cpu, or cuda for a GPU.", metavar="cpu|cuda")] = "cpu"
    dtype: Annotated[Literal["float64", "float32"], Parameter(help="Numbers to solve with; float32 on a GPU only.")] = (
        "float64"
    )
    frames: Annotated[int, Parameter(help="Use the first so many frames of the film at the most.")] = 10_000

    @property
    def engine(self) -> str:
        """Where to compute and with which numbers, in one word."""
        from psmt.engines import engine_name

        return engine_name(self.device, self.dtype)

    def check(self) -> None:
        """Raise for values that no film can make right, before any work is done."""
        from psmt.validation import check_count, check_real

        if self.engine != "cpu":
            from psmt.engines import engine_for

            engine_for(self.engine)
        check_count("frames", self.frames)
        check_count("seed", self.seed, minimum=0)
        check_real("alpha", self.alpha, open_bound=True)
        for name in ("atoms", "horizon"):
            values = getattr(self, name, None)
            for value in values if isinstance(values, tuple) else [values]:
                if value not in (None, "all"):
                    check_count(name, value)
        window = getattr(self, "window", None)
        if window is not None:
            check_count("window", window, minimum=3)
        components, lam = getattr(self, "components", "auto"), getattr(self, "lam", "auto")
        if components != "auto":
            check_count("components", components)
        if lam != "auto":
            check_real("lam", lam)


@dataclass(frozen=True, kw_only=True)
class PatchOptions(FilmOptions):
    """What the commands take that look at one patch of each frame."""

    size: Annotated[int, Parameter(help="Side of the frame in pixels, after shrinking its centred square.")] = 200
    patch: Annotated[int, Parameter(help="Side of the patch in pixels; N is its square.")] = 16
    position: Annotated[
        tuple[int, int] | None,
        Parameter(
            help="Top left corner ROW,COLUMN of the patch in the frame. Left out: the centre.",
            metavar="ROW,COLUMN",
            negative=(),
            n_tokens=1,
            converter=_row_column,
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        """As for all commands; and a patch that lies in the frame."""
        super().check()
        from psmt.patches import PatchCutter

        PatchCutter(frame_size=self.size, patch_size=self.patch, position=self.position)


@dataclass(frozen=True, kw_only=True)
class PredictOptions(PatchOptions):
    """Options of `psmt predict`."""

    atoms: Annotated[int, Parameter(help="M: atoms in the dictionary.")] = 512
    window: Annotated[int, Parameter(help="H: how many of the latest codes the embedding is made from.")] = 1536
    components: Components = "auto"
    lam: Lam = "auto"
    start: Start = ()
    horizon: Horizon = 30
    out: Out = Path("psmt-predict")


@dataclass(frozen=True, kw_only=True)
class VideoOptions(FilmOptions):
    """Options of `psmt predict-video`."""

    alpha: Annotated[float, Parameter(help="α: price of activity in layer 1, sparse coding.")] = 0.2
    size: Annotated[
        Literal["native"] | int | None,
        Parameter(
            help="Side of the frame in pixels, after shrinking its centred square; native keeps the film's own "
            "picture. Left out: 200, or the whole square of a smaller film.",
            metavar="native|INT",
            show_default=False,
            **_AUTO,
        ),
    ] = None
    atoms: Annotated[int, Parameter(help="M: atoms in the dictionary.")] = 256
    extrapolation: Annotated[
        Literal["phase", "gain", "linear", "hold"], Parameter(help="How PSMT continues what it has seen.")
    ] = "phase"
    start: Annotated[
        int | None,
        Parameter(
            help="T: frame to start from; all before it is only learned from. Left out: 400, or half of a short film.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    horizon: Annotated[
        Literal["all"] | int | None,
        Parameter(
            help="K: how many frames are predicted after the start. Left out: 500, or as many as there are.",
            metavar="all|INT",
            show_default=False,
            **_AUTO,
        ),
    ] = None
    peers: Annotated[
        tuple[Literal["blocks", "ridge"], ...],
        Parameter(
            help="One more method to compare with, slower than the rest: block motion or ridge regression; may be "
            "repeated.",
            negative=(),
            show_default=False,
        ),
    ] = ()
    force: Annotated[
        bool,
        Parameter(help="Start over: do not go on where an earlier run was broken off.", negative=(), show_default=False),
    ] = False
    out: Out = Path("psmt-predict-video")

    def check(self) -> None:
        """As for all commands; and a size that can be predicted, where it can be."""
        if self.device != "cpu":
            raise PSMTError(f"--device {self.device}: whole frames are predicted on the CPU; choices: cpu")
        super().check()
        self.settings()
        from psmt.video.reader import FrameReader

        if self.size is not None:
            FrameReader(self.size)

    def settings(self) -> VideoSettings:
        """As the library takes them."""
        from psmt.experiments.predict_video import VideoSettings

        return VideoSettings(
            start=self.start,
            horizon=self.horizon,
            n_atoms=self.atoms,
            alpha=self.alpha,
            extrapolation=self.extrapolation,
            seed=self.seed,
            peers=self.peers,
        )


@dataclass(frozen=True, kw_only=True)
class TaskOptions(PatchOptions):
    """What all commands take whose work is cut into tasks."""

    quick: Annotated[
        bool,
        Parameter(
            help=f"A small version: at most 128 atoms and the first {QUICK_FRAMES:,} frames.",
            negative=(),
            show_default=False,
        ),
    ] = False
    force: Annotated[
        bool,
        Parameter(help="Start over: remove finished tasks from the folder first.", negative=(), show_default=False),
    ] = False
    workers: Annotated[
        int | None,
        Parameter(
            help="Processes. Left out: one per CPU, as many as 4 GiB of memory hold.", metavar="INT", show_default=False
        ),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(
            help="Address of a Dask scheduler whose workers are used instead, see docs/scaling.md.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        """As for all commands; and not both processes and a cluster."""
        super().check()
        if self.workers is not None:
            from psmt.validation import check_count

            check_count("workers", self.workers)
            if self.cluster is not None:
                raise PSMTError(f"--workers {self.workers} has no meaning with --cluster; leave out one of them")

    @property
    def n_frames(self) -> int:
        """Frames that are read at the most."""
        return min(self.frames, QUICK_FRAMES) if self.quick else self.frames


def _components(value: int | str) -> int | None:
    return None if value == "auto" else int(value)


def _lam(value: float | str) -> float:
    return DEFAULT_LAM if value == "auto" else float(value)


def _sweep_settings(options: SweepOptions | ReproduceOptions, atoms: tuple[int, ...]) -> SweepSettings:
    from dataclasses import replace

    from psmt.experiments.sweep import SweepSettings

    base = SweepSettings.quick() if options.quick else SweepSettings()
    return replace(
        base,
        n_atoms=atoms or base.n_atoms,
        n_components=_components(options.components),
        alpha=options.alpha,
        lam=_lam(options.lam),
        seed=options.seed,
    )


@dataclass(frozen=True, kw_only=True)
class SweepOptions(TaskOptions):
    """Options of `psmt sweep`."""

    atoms: Annotated[
        tuple[int, ...],
        Parameter(
            help="M: atoms in the dictionary; may be repeated. Left out: 512, 1024 and 2048.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    window: Annotated[
        int | None,
        Parameter(
            help="H: how many codes the embedding is made from. Left out: 2, 2.5 and 3 times M.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    components: QuarterComponents = "auto"
    lam: FixedLam = "auto"
    out: Out = Path("psmt-sweep")

    def settings(self) -> SweepSettings:
        """As the library takes them."""
        from dataclasses import replace
        from math import nextafter

        settings = _sweep_settings(self, self.atoms)
        if self.window is None:
            return settings
        if len(settings.n_atoms) != 1:
            raise PSMTError(f"--window {self.window} belongs to one M; give one --atoms with it, or leave it out")
        ratio = self.window / settings.n_atoms[0]
        # The library takes H as a multiple of M, which must not fall below H by rounding.
        return replace(
            settings, ratios=(ratio if int(ratio * settings.n_atoms[0]) == self.window else nextafter(ratio, 1e9),)
        )


@dataclass(frozen=True, kw_only=True)
class TopologyOptions(TaskOptions):
    """Options of `psmt topology`."""

    atoms: Annotated[
        int | None, Parameter(help="M: atoms in the dictionary. Left out: 2048.", metavar="INT", show_default=False)
    ] = None
    window: Annotated[
        int | None,
        Parameter(
            help="H: how many codes the embedding is made from. Left out: 3 times M.", metavar="INT", show_default=False
        ),
    ] = None
    components: QuarterComponents = "auto"
    atom: Annotated[
        tuple[int, ...],
        Parameter(
            help="Atom to follow; may be repeated. Left out: the three most informative.",
            metavar="INT",
            negative=(),
            show_default=False,
        ),
    ] = ()
    out: Out = Path("psmt-topology")

    def settings(self) -> TopologySettings:
        """As the library takes them."""
        return _topology_settings(self, self.atom)


def _topology_settings(options: TopologyOptions | ReproduceOptions, chosen: tuple[int, ...] = ()) -> TopologySettings:
    from dataclasses import replace

    from psmt.experiments.topology import TopologySettings

    base = TopologySettings.quick() if options.quick else TopologySettings()
    atoms = options.atoms or base.n_atoms
    return replace(
        base,
        n_atoms=atoms,
        window=options.window or 3 * atoms,
        n_components=_components(options.components),
        alpha=options.alpha,
        chosen=chosen or None,
        seed=options.seed,
    )


@dataclass(frozen=True, kw_only=True)
class ReconstructOptions(TaskOptions):
    """Options of `psmt reconstruct`."""

    atoms: Annotated[
        int | None, Parameter(help="M: atoms in the dictionary. Left out: 512.", metavar="INT", show_default=False)
    ] = None
    window: Annotated[
        int | None,
        Parameter(
            help="H: frames that phases need before them, and length of the segment of least error. Left out: 3 times "
            "M.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    components: QuarterComponents = "auto"
    lam: FixedLam = "auto"
    horizon: Horizon = 30
    out: Out = Path("psmt-reconstruct")

    def settings(self) -> ReconstructionSettings:
        """As the library takes them."""
        return _reconstruction_settings(self)


def _reconstruction_settings(options: ReconstructOptions | ReproduceOptions) -> ReconstructionSettings:
    from psmt.experiments.plan import ReconstructionSettings

    return ReconstructionSettings(
        n_atoms=options.atoms or (128 if options.quick else 512),
        n_components=_components(options.components),
        alpha=options.alpha,
        lam=_lam(options.lam),
        seed=options.seed,
    )


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(TaskOptions):
    """Options of `psmt reproduce`."""

    atoms: Annotated[
        int | None,
        Parameter(
            help="M: atoms in the dictionary, in all experiments. Left out: the paper's, 512 to 2048.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    window: Annotated[
        int | None,
        Parameter(
            help="H: how many codes the embedding is made from, in topology and prediction. Left out: 3 times M.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    components: Annotated[
        Literal["auto"] | int,
        Parameter(
            help="f: dimension of the embedding; auto is a quarter of the atoms, and chosen by predicting the end of "
            "the past where there is one.",
            metavar="auto|INT",
            **_AUTO,
        ),
    ] = "auto"
    lam: Annotated[
        Literal["auto"] | float,
        Parameter(
            help=f"λ: price of activity in step 7, recovery; auto is {DEFAULT_LAM}, or chosen as above.",
            metavar="auto|FLOAT",
            **_AUTO,
        ),
    ] = "auto"
    start: Start = ()
    horizon: Horizon = 30
    out: Out = Path("psmt-reproduce")

    def settings(self) -> ReproduceSettings:
        """As the library takes them."""
        from psmt.experiments.plan import PredictionSettings, ReproduceSettings

        reconstruction = _reconstruction_settings(self)
        return ReproduceSettings(
            sweep=_sweep_settings(self, () if self.atoms is None else (self.atoms,)),
            topology=_topology_settings(self),
            reconstruction=reconstruction,
            prediction=PredictionSettings(
                n_atoms=reconstruction.n_atoms,
                window=self.window or 3 * reconstruction.n_atoms,
                horizon=self.horizon,
                n_components=self.components,
                alpha=self.alpha,
                lam=self.lam,
                seed=self.seed,
                starts=self.start,
            ),
        )
