"""What of a film is predicted, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

from numpy.typing import NDArray

from psmt.errors import NotEnoughFramesError
from psmt.surprise import SurpriseAlarm
from psmt.types import Predictor, Result
from psmt.utils.validation import Constraint, allowing, check_parameters, choice, count, each, real
from psmt.video import FRAME_BASELINES, FRAME_EXTRAPOLATIONS, FramePSMT

FRAME_METHODS = {"psmt": "PSMT", **{name: entry.label for name, entry in FRAME_BASELINES.items()}}
"""Methods by their name in files, with the name for people."""

SLOW_BASELINES = tuple(name for name, entry in FRAME_BASELINES.items() if entry.slow)
"""Baselines that cost about as much as the model, and are left out unless asked for."""

LEARN, LEAST = 400, 4
"""Frames that are learned from before the start: by default, and at the least."""
HORIZON = 500
"""Frames that are predicted at the most unless asked for more."""


class FrameMethod(Predictor, Protocol):
    """A predictor that goes on, bit for bit, where another one with the same parameters was."""

    def get_state(self) -> Result:
        """All that goes on from frame to frame, as arrays."""

    def set_state(self, state: Mapping[str, NDArray[Any]], /) -> Self:
        """Go on as the one that gave this state."""


@dataclass(frozen=True, kw_only=True)
class VideoSettings:
    """What to predict, and with what."""

    start: int | None = None
    """T: the last frame that is received before the first prediction. None: after LEARN frames, or half the film."""
    horizon: int | Literal["all"] | None = None
    """K: frames that are predicted. None: as far as the film goes, but HORIZON at the most."""
    window: int = LEARN
    """Frames before the start that are learned from, at the most."""
    extrapolation: str = "phase"
    prior: str | None = "default"
    """What other films have taught, as in `FramePSMT`."""
    baselines: tuple[str, ...] = ()
    """Those of SLOW_BASELINES that take part."""
    rollout: int = 10
    """Frames that each method predicts by itself, now and then."""
    every: int | None = None
    """Frames from the beginning of one rollout to that of the next. None: a tenth of the horizon, but 10 to 50."""
    false_alarms: float = 1e-3
    """Share of the frames of a film without events that are taken for surprises."""
    device: str = "cpu"
    """Where PSMT makes and weighs its candidates."""
    raw: str | None = None
    """File for the film of plain predictions."""

    _parameter_constraints: ClassVar[dict[str, Constraint]] = {
        "start": allowing(None, count(LEAST)),
        "horizon": allowing(None, allowing("all", count())),
        "window": count(LEAST),
        "rollout": count(0),
        "every": allowing(None, count()),
        "extrapolation": choice(*FRAME_EXTRAPOLATIONS),
        "baselines": each(choice(*SLOW_BASELINES)),
        "false_alarms": real(open_bound=True),
    }

    def __post_init__(self) -> None:
        """Check what can be checked without a film."""
        check_parameters(self, self._parameter_constraints)
        SurpriseAlarm(self.false_alarms)

    def methods(self) -> dict[str, FrameMethod]:
        """All that is compared, not yet fitted."""
        psmt = FramePSMT(extrapolation=self.extrapolation, prior=self.prior, device=self.device)
        taking_part = (name for name, entry in FRAME_BASELINES.items() if name in self.baselines or not entry.slow)
        return {"psmt": psmt, **{name: FRAME_BASELINES[name].make() for name in taking_part}}


def extent(n_frames: int | None, settings: VideoSettings) -> tuple[int, int | None]:
    """Start and number of frames to predict in a film of so many frames; None: to its end, wherever that is."""
    start, horizon = settings.start, settings.horizon
    if n_frames is None:
        return start or LEARN, None if horizon == "all" else horizon or HORIZON
    if start is None:
        start = max(min(LEARN, n_frames // 2), LEAST)
    room = n_frames - start - 1
    wanted = horizon if isinstance(horizon, int) else 1
    if room < wanted:
        raise NotEnoughFramesError(too_short(n_frames, start, wanted))
    if isinstance(horizon, int):
        return start, horizon
    return start, None if horizon == "all" else min(room, HORIZON)


def too_short(n_frames: int, start: int, horizon: int) -> str:
    """Message for a film with fewer frames than start and horizon need."""
    text = f"the film has {n_frames} frames, but start={start} and horizon={horizon} need {start + horizon + 1}"
    if n_frames < LEAST + 2:
        return f"{text}; give a film of at least {LEAST + 2} frames"
    return f"{text}; use an earlier start (>= {LEAST}) or a smaller horizon"
