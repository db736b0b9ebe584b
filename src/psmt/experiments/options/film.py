"""What all commands take, and what they ask of a source."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from cyclopts import Parameter

from psmt.experiments.options.parameters import Out

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from psmt.data import FrameSource, SeriesSource
    from psmt.experiments.provenance import FilmRecord
    from psmt.experiments.still_image import Still
    from psmt.types import Progress


@dataclass(frozen=True, kw_only=True)
class FilmOptions(ABC):
    """What all commands take: the device, how much of the film, and where results go."""

    device: Annotated[str, Parameter(help="Where to compute: cpu, or cuda for a GPU.", metavar="cpu|cuda")] = "cpu"
    dtype: Annotated[Literal["float64", "float32"], Parameter(help="Numbers to solve with; float32 on a GPU only.")] = (
        "float64"
    )
    frames: Annotated[int, Parameter(help="Use the first so many frames of the film at the most.")] = 10_000
    force: Annotated[
        bool,
        Parameter(help="Start over: remove finished tasks from the folder first.", negative=(), show_default=False),
    ] = False
    json: Annotated[
        bool,
        Parameter(
            help="Print summary.json, in one line per film, and nothing else on stdout.",
            negative=(),
            show_default=False,
        ),
    ] = False
    out: Out = Path("psmt-out")

    film: ClassVar[str] = "Video, folder of images, .tif stack, .npy, .npz, .csv, .tsv, .mat, or builtin:glide."
    """Help on what the command works on."""
    film_type: ClassVar[Any] = str
    """What the command line reads it as: one name, or ``tuple[str, ...]`` for a command that takes several together."""
    film_name: ClassVar[str | None] = None
    """What help calls it, where it is no film."""
    default_film: ClassVar[Any] = None
    """What it works on where nothing is given; None asks for a film."""
    foretells: ClassVar[bool] = False
    """Whether it says what to expect of a film by its speed and noise."""
    alone: ClassVar[tuple[str, ...]] = ()
    """Options that mean something else in another command, and are not taken from there."""

    @classmethod
    def within(cls, given: "FilmOptions") -> Self:
        """These options as another command has them: it runs this experiment too."""
        shared: dict[str, Any] = {}
        for field in fields(cls):
            if field.name not in cls.alone and hasattr(given, field.name):
                value = getattr(given, field.name)
                if isinstance(field.default, tuple) and not isinstance(value, tuple):
                    value = () if value in (None, "auto") else (value,)
                shared[field.name] = value
        return cls(**shared)

    @abstractmethod
    def settings(self) -> Any:
        """As the library takes them."""

    @abstractmethod
    def open(self, spec: str) -> "FrameSource | SeriesSource":
        """The source of a name that was given on the command line."""

    @abstractmethod
    def read(self, source: Any, progress: "Progress") -> Any:
        """What the experiment works on."""

    def remarks(self, _source: Any, _material: Any, /) -> Sequence[str]:
        """What is said of the source before the results."""
        return ()

    def suited(self, _source: Any, /) -> Self:
        """These options for a source that was opened: what depends on its kind is settled."""
        return self

    @property
    def sizes_given(self) -> bool:
        """Whether somebody asked for M or H, so that no others may be taken for a film that is too short."""
        return bool(getattr(self, "atoms", None) or getattr(self, "window", None))

    def record(self, source: Any, _material: Any, /) -> "FilmRecord":
        """What reports tell of the source."""
        from psmt.experiments.provenance import FilmRecord

        return FilmRecord(
            name=source.name,
            checksum=source.checksum() if getattr(source, "repeatable", False) else None,
            n_frames=source.n_frames,
        )

    def still(self, _source: Any, /) -> "Still | None":
        """A picture of the source for the first screen of its report."""
        return None

    def picture_shape(self, _source: Any, /) -> tuple[int, int] | None:
        """Height and width of the picture that features are the pixels of; None where they are none."""
        return None

    def executor(self, _settings: Any, /) -> "AbstractContextManager[Executor | None]":
        """Where tasks run: in this process."""
        return nullcontext()

    @property
    def n_frames(self) -> int:
        """Frames that are read at the most."""
        return self.frames

    @property
    def engine(self) -> str:
        """Where to compute and with which numbers, in one word."""
        from psmt.engines import engine_name

        return engine_name(self.device, self.dtype)

    def check(self) -> None:
        """Raise for values that no film can make right, before any work is done."""
        from psmt.utils.validation import check_count, check_real

        if self.engine != "cpu":
            from psmt.engines import engine_for

            engine_for(self.engine)
        if getattr(self, "solver", "closed") != "closed":
            from psmt.embedding.stochastic import check_solver

            check_solver("sgd", device=self.device)
        check_count("frames", self.frames)
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
        for value in lam if isinstance(lam, tuple) else [lam]:
            if value != "auto":
                check_real("lam", value)
