"""Flags for departures from the paper."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from psmt.experiments.options.parameters import AUTO

if TYPE_CHECKING:
    from psmt.model.paper_options import Departures


@dataclass(frozen=True, kw_only=True)
class EmbeddingFlags:
    """How an embedding departs from the paper. What is left out is as the paper has it with --literal, else as ours."""

    literal: Annotated[
        bool,
        Parameter(
            help="The paper to the letter, without any departure but those asked for (docs/explanation/departures.md).",
            negative=(),
            show_default=False,
        ),
    ] = False
    half_stencils: Annotated[
        bool | None, Parameter(help="D is H x H, with half stencils at both ends, as in the paper.", show_default=False)
    ] = None
    centred: Annotated[
        bool | None, Parameter(help="V is the covariance, as in the paper, or taken about zero.", show_default=False)
    ] = None
    rank_tol: Annotated[
        float | None,
        Parameter(
            help="Noise, relative to the atoms' variance, that V is seen through. 0, as in the paper: none.",
            metavar="FLOAT",
            show_default=False,
        ),
    ] = None

    def settings(self) -> "Departures":
        """As the library takes them."""
        from psmt.model.paper_options import Departures

        flags = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "literal"}
        given: dict[str, Any] = {
            name: None if value == "none" else value for name, value in flags.items() if value is not None
        }
        return replace(Departures.literal() if self.literal else Departures(), **given)


@dataclass(frozen=True, kw_only=True)
class RecoveryFlags(EmbeddingFlags):
    """The same, with step 7."""

    activity_bound: Annotated[
        Literal["none"] | float | None,
        Parameter(
            help="Activity of a recovered code, relative to the window's peak, at the most. In the paper: none.",
            metavar="none|FLOAT",
            show_default=False,
            **AUTO,
        ),
    ] = None
    merge_parallel: Annotated[
        bool | None,
        Parameter(help="Recover atoms with parallel columns in P together; not so in the paper.", show_default=False),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ModelFlags(RecoveryFlags):
    """The same, with layer 1 of a prediction."""

    dictionary_from: Annotated[
        Literal["past", "window"] | None,
        Parameter(
            help="A prediction's dictionary is learned from all that lies before it, or as in the paper from the "
            "H frames of the window.",
            show_default=False,
        ),
    ] = None
    on_cut: Annotated[
        Literal["hold", "ignore"] | None,
        Parameter(help="After a cut the last code is held, or as in the paper nothing is done.", show_default=False),
    ] = None


EMBEDDING_FLAGS, RECOVERY_FLAGS, MODEL_FLAGS = EmbeddingFlags(), RecoveryFlags(), ModelFlags()
"""No flag given."""

EmbeddingDepartures = Annotated[EmbeddingFlags, Parameter(name="*")]
RecoveryDepartures = Annotated[RecoveryFlags, Parameter(name="*")]
ModelDepartures = Annotated[ModelFlags, Parameter(name="*")]
