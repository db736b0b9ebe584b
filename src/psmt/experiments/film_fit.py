"""Sizes that experiments share: f where none is given, and smaller ones for a film that is too short."""

from __future__ import annotations

LADDER = (512, 256, 128, 64, 32)
"""Numbers of atoms that are tried, largest first, where a film is too short for what was asked."""

RATIO = 3
"""Frames in a window per atom that goes with them, which the paper found best."""


def components_for(n_atoms: int, n_components: int | None) -> int:
    """Dimension f where all frames of a window are reconstructed: as given, or a quarter of the atoms."""
    return max(n_atoms // 4, 1) if n_components is None else n_components


def smaller_sizes(n_atoms: int) -> list[int]:
    """What is tried after `n_atoms`, largest first."""
    return [size for size in LADDER if size < n_atoms]


def smaller_was_used(n_frames: int, asked: tuple[int, int], used: tuple[int, int]) -> str:
    """Note on a film that is too short for the M and H asked for."""
    return (
        f"the film has {n_frames:,} frames, too few for M = {asked[0]:,} with H = {asked[1]:,}; "
        f"M = {used[0]:,} with H = {used[1]:,} was used, the largest of {', '.join(map(str, LADDER))} that fits"
    )


def nothing_fits(n_frames: int, tried: tuple[int, int], needed: int) -> str:
    """Note on a film that is too short for the smallest M and H."""
    return (
        f"the film has {n_frames:,} frames; M = {tried[0]:,} with H = {tried[1]:,}, the smallest that is tried, "
        f"needs {needed:,}"
    )
