"""What `reproduce` is asked for, and what of it fits into a film."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from psmt.errors import NotEnoughFramesError
from psmt.experiments.prediction import check_start
from psmt.experiments.reconstruction import check_length, components_for
from psmt.experiments.sweep import SweepSettings
from psmt.experiments.topology import TopologySettings
from psmt.validation import check_count, check_real

LADDER = (512, 256, 128, 64, 32)
"""Numbers of atoms that are tried, largest first, where a film is too short for what was asked."""

RATIO = 3
"""Frames in a window per atom that goes with them, which the paper found best."""


@dataclass(frozen=True, kw_only=True)
class ReconstructionSettings:
    """The original transform, with all frames in one window; n_components None is a quarter of the atoms."""

    n_atoms: int = 512
    n_components: int | None = None
    alpha: float = 1.0
    lam: float = 0.1
    max_epochs: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("n_atoms", self.n_atoms)
        check_real("alpha", self.alpha, open_bound=True)
        check_real("lam", self.lam)

    @property
    def components(self) -> int:
        """f."""
        return components_for(self.n_atoms, self.n_components)

    def check(self, n_frames: int) -> None:
        """Raise unless there are more frames than atoms: the paper's own condition, without which V is singular."""
        if n_frames <= self.n_atoms:
            raise NotEnoughFramesError(
                f"the film has {n_frames} frames, not more than n_atoms={self.n_atoms}; "
                f"use n_atoms < {n_frames}, or a longer film"
            )


@dataclass(frozen=True, kw_only=True)
class PredictionSettings:
    """What is predicted; without `starts`, a calm and a lively phase are searched."""

    n_atoms: int = 512
    window: int = 1536
    horizon: int = 30
    n_components: int | Literal["auto"] = "auto"
    alpha: float = 1.0
    lam: float | Literal["auto"] = "auto"
    seed: int = 0
    starts: tuple[int, ...] = ()

    def check(self, n_frames: int) -> None:
        """Raise unless the film is long enough."""
        check_length(n_frames, window=self.window, horizon=self.horizon)
        for start in self.starts:
            check_start(start, n_frames, window=self.window, horizon=self.horizon)


@dataclass(frozen=True, kw_only=True)
class ReproduceSettings:
    """The four experiments; the defaults are the paper's sizes."""

    sweep: SweepSettings = field(default_factory=SweepSettings)
    topology: TopologySettings = field(default_factory=TopologySettings)
    reconstruction: ReconstructionSettings = field(default_factory=ReconstructionSettings)
    prediction: PredictionSettings = field(default_factory=PredictionSettings)

    @classmethod
    def quick(cls) -> Self:
        """The small version: a film of a thousand frames, less than a minute."""
        return cls(
            sweep=SweepSettings.quick(),
            topology=TopologySettings.quick(),
            reconstruction=ReconstructionSettings(n_atoms=128),
            prediction=PredictionSettings(n_atoms=128, window=384),
        )

    @classmethod
    def demo(cls) -> Self:
        """For the built-in film: up to twice overcomplete, and two and more windows without common frames."""
        return cls(
            sweep=SweepSettings(n_atoms=(128, 256, 512)),
            topology=TopologySettings(n_atoms=320, window=960, overlap=31 / 32),
            reconstruction=ReconstructionSettings(n_atoms=320),
            prediction=PredictionSettings(n_atoms=320, window=960),
        )

    def seeded(self, seed: int) -> Self:
        """The same with another seed."""
        parts = {name: replace(part, seed=seed) for name, part in vars(self).items()}
        return replace(self, **parts)

    @property
    def largest(self) -> int:
        """The largest M."""
        return max(*self.sweep.n_atoms, self.topology.n_atoms, self.reconstruction.n_atoms, self.prediction.n_atoms)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings that fit into a film, None for an experiment that no size fits, and why they are not as asked."""

    sweep: SweepSettings | None
    topology: TopologySettings | None
    reconstruction: ReconstructionSettings | None
    prediction: PredictionSettings | None
    notes: dict[str, str] = field(default_factory=dict)
    """By experiment; nothing for one that is as asked."""


def make_plan(settings: ReproduceSettings, n_frames: int) -> Plan:
    """What of the settings fits into a film of `n_frames`.

    >>> plan = make_plan(ReproduceSettings(), 977)
    >>> plan.sweep.n_atoms, plan.topology.n_atoms, plan.prediction.window
    ((64, 128, 256, 512, 1024, 2048), 256, 768)
    >>> make_plan(ReproduceSettings(), 100).notes["prediction"]
    'the film has 100 frames; M = 32 with H = 96, the smallest that is tried, needs 127'
    """
    notes: dict[str, str] = {}
    return Plan(
        sweep=_sweep(settings.sweep, n_frames, notes),
        topology=_topology(settings.topology, n_frames, notes),
        reconstruction=_reconstruction(settings.reconstruction, n_frames, notes),
        prediction=_prediction(settings.prediction, n_frames, notes),
        notes=notes,
    )


def _sweep(asked: SweepSettings, n_frames: int, notes: dict[str, str]) -> SweepSettings | None:
    whole = [size for size in asked.n_atoms if max(asked.windows(size)) <= n_frames]
    if len(whole) >= min(2, len(asked.n_atoms)):
        return asked
    smaller = [size for size in LADDER if size < min(asked.n_atoms) and max(asked.windows(size)) <= n_frames]
    added = tuple(sorted(smaller[: 3 - len(whole)]))
    partly = any(min(asked.windows(size)) <= n_frames for size in asked.n_atoms)
    if not added and not partly:
        needed = min(window for size in (*asked.n_atoms, LADDER[-1]) for window in asked.windows(size))
        notes["sweep"] = f"the film has {n_frames:,} frames; the smallest window that is tried needs {needed:,}"
        return None
    if added:
        notes["sweep"] = (
            f"the film has {n_frames:,} frames, too few to compare the sizes asked for; "
            f"M = {', '.join(map(str, added))} was added, and what does not fit is listed"
        )
    return replace(asked, n_atoms=added + asked.n_atoms)


def _topology(asked: TopologySettings, n_frames: int, notes: dict[str, str]) -> TopologySettings | None:
    for settings in (
        asked,
        *(replace(asked, n_atoms=m, window=RATIO * m, chosen=None) for m in LADDER if m < asked.n_atoms),
    ):
        needed = settings.window + settings.step
        if needed <= n_frames:
            if settings is not asked:
                notes["topology"] = _smaller(n_frames, asked.n_atoms, asked.window, settings.n_atoms, settings.window)
            return settings
    notes["topology"] = _nothing(n_frames, settings.n_atoms, settings.window, needed)
    return None


def _reconstruction(
    asked: ReconstructionSettings, n_frames: int, notes: dict[str, str]
) -> ReconstructionSettings | None:
    for size in (asked.n_atoms, *(m for m in LADDER if m < asked.n_atoms)):
        if size < n_frames:
            if size < asked.n_atoms:
                notes["reconstruction"] = (
                    f"the film has {n_frames:,} frames, not more than M = {asked.n_atoms:,}; M = {size:,} was used"
                )
            return replace(asked, n_atoms=size)
    notes["reconstruction"] = f"the film has {n_frames:,} frames; M = {size}, the smallest that is tried, needs more"
    return None


def _prediction(asked: PredictionSettings, n_frames: int, notes: dict[str, str]) -> PredictionSettings | None:
    for settings in (
        asked,
        *(replace(asked, n_atoms=m, window=RATIO * m) for m in LADDER if m < asked.n_atoms),
    ):
        try:
            settings.check(n_frames)
        except NotEnoughFramesError:
            continue
        if settings is not asked:
            notes["prediction"] = _smaller(n_frames, asked.n_atoms, asked.window, settings.n_atoms, settings.window)
        return settings
    if n_frames > settings.window + settings.horizon:
        settings.check(n_frames)  # there is room: it is a start that lies where nothing fits
    notes["prediction"] = _nothing(n_frames, settings.n_atoms, settings.window, settings.window + settings.horizon + 1)
    return None


def _smaller(n_frames: int, atoms: int, window: int, used: int, used_window: int) -> str:
    return (
        f"the film has {n_frames:,} frames, too few for M = {atoms:,} with H = {window:,}; "
        f"M = {used:,} with H = {used_window:,} was used, the largest of {', '.join(map(str, LADDER))} that fits"
    )


def _nothing(n_frames: int, atoms: int, window: int, needed: int) -> str:
    return (
        f"the film has {n_frames:,} frames; M = {atoms:,} with H = {window:,}, the smallest that is tried, "
        f"needs {needed:,}"
    )
