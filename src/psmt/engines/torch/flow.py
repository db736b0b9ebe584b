"""Dense optical flow (pyramidal Lucas-Kanade) on a torch device, as `psmt.engines.numba.flow` has it."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, grid_sample, pad

from psmt.engines.torch.nvrtc import kernel

LEVELS, SMALLEST, STEPS, RADIUS, DAMPING = 4, 12, 3, 3, 0.01
"""As on the CPU; a test holds the two against each other."""

_THREADS = 256
"""Of a block, in the kernels of `flow.cu`, which do in one launch what torch does in dozens."""


def flow_between(before: Tensor, now: Tensor) -> Tensor:
    """Where each pixel of `now` came from: `before` at (y, x) + flow[:, y, x]; (2, height, width)."""
    pyramid = [(before, now)]
    while len(pyramid) <= LEVELS and min(pyramid[-1][0].shape) >= 2 * SMALLEST:
        pyramid.append((_halved(pyramid[-1][0]), _halved(pyramid[-1][1])))
    flow = torch.zeros((2, *pyramid[-1][0].shape), dtype=before.dtype, device=before.device)
    for smaller_before, smaller_now in pyramid[::-1]:
        if flow.shape[1:] != smaller_now.shape:
            flow = _doubled(flow, *smaller_now.shape)
        flow = _refined(smaller_before, smaller_now, flow)
    return flow


def moved(frame: Tensor, flow: Tensor) -> Tensor:
    """The frame (height, width) read at (y, x) + flow[:, y, x], by Catmull-Rom interpolation."""
    height, width = frame.shape
    compiled = kernel("flow.cu", "moved", frame.dtype, frame.device, _THREADS)
    if compiled is not None:
        result = torch.empty_like(frame, memory_format=torch.contiguous_format)
        compiled(_blocks(result), _THREADS, 0, frame.contiguous(), flow.contiguous(), result, height, width)
        return result
    row, column = _places(height, width, flow)
    i, j = row.floor(), column.floor()
    down, right = _catmull_rom(row - i), _catmull_rom(column - j)
    steps = torch.arange(-1, 3, device=frame.device)[:, None, None]
    rows = (i.long() + steps).clip(0, height - 1)
    columns = (j.long() + steps).clip(0, width - 1)
    seen = frame[rows[:, None], columns[None]]
    return ((seen * right).sum(dim=1) * down).sum(dim=0)


def _blocks(pixels: Tensor) -> int:
    """Blocks that have a thread for each pixel."""
    return -(-int(pixels.numel()) // _THREADS)


def _catmull_rom(t: Tensor) -> Tensor:
    """Weights (4, ..) of the pixels around a position a fraction `t` after the second of them."""
    return 0.5 * torch.stack(
        [t * (t * (2 - t) - 1), t * t * (3 * t - 5) + 2, t * (t * (4 - 3 * t) + 1), t * t * (t - 1)]
    )


def _places(height: int, width: int, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns (height, width) that a flow leads to, inside the frame."""
    rows = torch.arange(height, device=flow.device, dtype=flow.dtype)[:, None]
    columns = torch.arange(width, device=flow.device, dtype=flow.dtype)
    return (rows + flow[0]).clip(0, height - 1), (columns + flow[1]).clip(0, width - 1)


def _between(frames: Tensor, grid: Tensor) -> Tensor:
    """Grey levels (n, ..) of frames (n, height, width) at a grid (.., 2) of places, by bilinear interpolation.

    Places are columns and rows, from -1 at one edge to 1 at the other; the edge goes on beyond.
    """
    return grid_sample(frames[None], grid[None], mode="bilinear", padding_mode="border", align_corners=True)[0]


def _refined(before: Tensor, now: Tensor, flow: Tensor) -> Tensor:
    """The flow (2, height, width) from `before` to `now`, improved by Gauss-Newton steps."""
    ahead = pad(now[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    slopes = 0.5 * torch.stack([ahead[2:, 1:-1] - ahead[:-2, 1:-1], ahead[1:-1, 2:] - ahead[1:-1, :-2]])
    tensor = torch.stack([slopes[0] * slopes[0], slopes[0] * slopes[1], slopes[1] * slopes[1]])
    damping = DAMPING * (tensor[0].mean() + tensor[2].mean()) + 1e-12
    a, b, c = _blurred(tensor)
    a, c = a + damping, c + damping
    inverse = torch.stack([c, -b, -b, a]).div_(a * c - b * b).reshape(2, 2, *now.shape)
    still, scale = _grid(now.shape, now.dtype, now.device)

    def gap(along: Tensor) -> Tensor:
        return _between(before[None], torch.addcmul(still, along.flip(0).permute(1, 2, 0), scale))[0] - now

    refined = flow
    for _ in range(STEPS):
        pull = _blurred(slopes * gap(refined))
        refined = refined - (inverse * pull).sum(dim=1).clip_(-1, 1)
    # What explains less is taken back, and standing still wins a tie.
    misfits = _blurred(torch.stack([gap(flow), gap(refined), before - now]).square_())
    back = misfits[0] < misfits[1]
    chosen, error = torch.where(back, flow, refined), torch.where(back, misfits[0], misfits[1])
    return _blurred(torch.where(misfits[2] <= error, 0.0, chosen))


@lru_cache(32)
def _grid(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Places (height, width, 2) of all pixels as `_between` takes them, and how far one pixel is there, (2,)."""
    height, width = shape
    scale = torch.tensor([2 / max(width - 1, 1), 2 / max(height - 1, 1)], dtype=dtype)
    columns, rows = torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy")
    still = torch.stack([columns, rows], dim=-1) * scale - 1
    return still.to(device), scale.to(device)


def _blurred(values: Tensor) -> Tensor:
    """Values (n, height, width), smoothed by a box along both axes, twice."""
    compiled = kernel("flow.cu", "boxed", values.dtype, values.device, _THREADS)
    if compiled is not None:
        for _ in range(2):
            means = torch.empty_like(values, memory_format=torch.contiguous_format)
            compiled(_blocks(means), _THREADS, 0, values.contiguous(), means, *values.shape, RADIUS)
            values = means
        return values
    for _ in range(2):
        padded = pad(values[None], (RADIUS,) * 4, mode="replicate")
        values = avg_pool2d(padded, 2 * RADIUS + 1, stride=1)[0]
    return values


def _halved(frame: Tensor) -> Tensor:
    """The frame (height, width) at half its size, by binomial weights (1, 3, 3, 1) / 8; odd edges are cut off."""
    height, width = (length // 2 * 2 for length in frame.shape)
    padded = pad(frame[None, None, :height, :width], (1, 1, 1, 1), mode="replicate")[0, 0]
    rows = 0.125 * (padded[0:-2:2] + padded[3::2]) + 0.375 * (padded[1:-2:2] + padded[2:-1:2])
    return 0.125 * (rows[:, 0:-2:2] + rows[:, 3::2]) + 0.375 * (rows[:, 1:-2:2] + rows[:, 2:-1:2])


def _doubled(flow: Tensor, height: int, width: int) -> Tensor:
    """The flow (2, ..) of a frame of half the size, for one of (height, width)."""
    tall, wide = flow.shape[1:]
    rows = 0.5 * torch.arange(height, device=flow.device, dtype=flow.dtype) - 0.25
    columns = 0.5 * torch.arange(width, device=flow.device, dtype=flow.dtype) - 0.25
    places = (2 * columns / max(wide - 1, 1) - 1).expand(height, width), 2 * rows[:, None] / max(tall - 1, 1) - 1
    return 2 * _between(flow, torch.stack([places[0], places[1].expand(height, width)], dim=-1))
