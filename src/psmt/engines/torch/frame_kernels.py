"""Operations on whole frames on a torch device: see `psmt.engines.frame_kernels.FrameKernels`.

Each operation takes a few GPU launches, however many tiles and cells there are. None reads a result on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isqrt
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, fold, grid_sample, interpolate, pad

from psmt.engines.frame_kernels import CellSums, Factors, Shape, Tiles, Work
from psmt.engines.torch.cuda import Captured, kernel
from psmt.types import AnyArray

_Layers = tuple[tuple[Tensor, Tensor], ...]
_Sums = tuple[Tensor, Tensor]

_SENT = 1 << 23  # arrays up to this many bytes go to a GPU through pinned memory, so that the host need not wait

LEVELS, SMALLEST, STEPS, RADIUS, DAMPING = 4, 12, 3, 3, 0.01
"""Parameters of the optical flow, the same as in `psmt.engines.numba.flow`; a test compares their results."""

_THREADS = 256  # threads of a block in the kernels of `flow.cu`, each of which replaces dozens of torch launches


class TorchFrameKernels:
    """Operations on whole frames. Arrays are tensors of float32 or complex64 on the device.

    Arrays that depend only on the size of frames (windows, pixel indices, filters) are made once and stay on the
    device.
    """

    def __init__(self, place: torch.device) -> None:
        self._place, self.convolves = place, place.type == "cuda"
        self._window = lru_cache(8)(lambda tiles: self.levels(tiles.window))
        self._weight = lru_cache(8)(lambda tiles: self.levels(tiles.weight))
        self._mirrored = lru_cache(8)(lambda tiles: tuple(map(self._indices, tiles.mirrored)))
        self._gaussian = lru_cache(8)(
            lambda n, width: self.levels(gaussian_filter1d(np.eye(n), width, axis=0, mode="reflect"))
        )
        self._shifted = lru_cache(8)(self._places_of_neighbours)
        self._cell_weights = Captured(_cell_weights)

    def __reduce__(self) -> tuple[type[TorchFrameKernels], tuple[torch.device]]:
        # The caches on the device are made again on demand.
        return TorchFrameKernels, (self._place,)

    def levels(self, values: ArrayLike) -> Tensor:
        if isinstance(values, Tensor):
            return values
        given = np.asarray(values)
        dtype = np.complex64 if np.iscomplexobj(given) else np.float32
        own = torch.from_numpy(np.require(given, dtype, ["C", "W"]))
        if self._place.type != "cuda" or own.nbytes > _SENT:
            return own.to(self._place)
        sent = torch.empty_like(own, pin_memory=True)
        sent.numpy()[...] = own.numpy()  # torch would wake all its threads for this copy
        return sent.to(self._place, non_blocking=True)

    def numpy(self, values: Tensor) -> AnyArray:
        return np.asarray(values.cpu().numpy())

    def capture(self, work: Work) -> Work:
        return cast(Work, Captured(work))

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        return [work() for work in works]

    def spectra(self, frame: Tensor, tiles: Tiles) -> Tensor:
        return torch.fft.rfft2(self._cut(frame, tiles))

    def next_spectra(
        self, frame: Tensor, tiles: Tiles, before: Tensor, cross: tuple[Tensor, ...], kept: tuple[float, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        now = self.spectra(frame, tiles)
        turn = now * before.conj()
        return now, tuple(torch.add(turn, old, alpha=memory) for memory, old in zip(kept, cross, strict=True))

    def advanced(self, now: Tensor, cross: tuple[Tensor, ...], tiles: Tiles) -> Tensor:
        change = torch.stack([now * _turn(by) - now for by in cross])
        return self._joined(torch.fft.irfft2(change, s=(tiles.size, tiles.size)), tiles)

    def flow(self, before: Tensor, now: Tensor) -> Tensor:
        pyramid = [(before, now)]
        while len(pyramid) <= LEVELS and min(pyramid[-1][0].shape) >= 2 * SMALLEST:
            pyramid.append((_halved(pyramid[-1][0]), _halved(pyramid[-1][1])))
        flow = torch.zeros((2, *pyramid[-1][0].shape), dtype=before.dtype, device=before.device)
        for smaller_before, smaller_now in pyramid[::-1]:
            if flow.shape[1:] != smaller_now.shape:
                flow = _doubled(flow, *smaller_now.shape)
            flow = _refined(smaller_before, smaller_now, flow)
        return flow

    def moved(self, frame: Tensor, flow: Tensor) -> Tensor:
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

    def bands(self, changes: Tensor, widths: tuple[float, ...], parts: Tensor) -> None:
        # Matrix products that mirror at the edge, because convolutions may round to ten bits.
        for fine, width in zip(parts, widths, strict=False):
            down, right = (self._gaussian(length, width) for length in changes.shape[1:])
            smooth = down @ changes @ right.mT
            torch.sub(changes, smooth, out=fine)
            changes = smooth
        parts[-1] = changes

    def neighbours(self, frame: Tensor, offsets: tuple[tuple[int, int], ...], base: Tensor, found: Tensor) -> None:
        places = self._shifted(tuple(frame.shape), offsets)
        torch.sub(frame.reshape(-1).index_select(0, places).reshape(len(offsets), *frame.shape), base, out=found)

    def cell_moments(self, candidates: Tensor, change: Tensor, cell: int) -> tuple[Tensor, Tensor]:
        layout = [-(-length // cell) for length in change.shape]
        return _moments(candidates, change, (cell, cell), layout)

    def add_moments(
        self, known: _Sums, kept: Factors, maps: Tensor, change: Tensor, weight: float, cell: Shape, out: _Sums
    ) -> None:
        for old, new, into in zip(known, _moments(maps, change, cell, known[1].shape[1:3]), out, strict=True):
            for k, factor in enumerate(kept):
                torch.mul(old[k], factor, out=into[k]).add_(new, alpha=weight)

    def cell_energy(self, change: Tensor, cell: int) -> Tensor:
        layout = [-(-length // cell) for length in change.shape]
        return _split(change[None], (cell, cell), layout).square().sum(dim=(2, 3))

    def cell_weights(
        self, gram: Tensor, match: Tensor, ridge: float, prior: float, known: CellSums | None, rows: slice = slice(None)
    ) -> Tensor:
        first, last, _ = rows.indices(len(gram))
        given = () if known is None else (self.levels(known[0]), self.levels(known[1]))
        found = self._cell_weights((gram, match), self.levels(ridge), given, prior=prior, first=first, last=last)
        return cast(Tensor, found)

    def weighted(self, candidates: Tensor, weights: Tensor, cell: int) -> Tensor:
        height, width = candidates.shape[1:]
        fields = interpolate(
            weights.permute(2, 0, 1)[None], scale_factor=float(cell), mode="bilinear", align_corners=False
        )[0, :, :height, :width]
        return (candidates * fields).sum(dim=0)

    def network(self, inputs: tuple[Tensor, ...], layers: _Layers) -> Tensor:
        sides = [isqrt(len(weights)) for weights, _ in layers]
        values = pad(torch.cat(inputs)[None], (sum(side // 2 for side in sides),) * 4, mode="replicate")
        # Otherwise cuDNN rounds to ten bits, and may give other results when a saved model continues.
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            for k, (side, (weights, biases)) in enumerate(zip(sides, layers, strict=True)):
                filters = weights.reshape(side, side, *weights.shape[1:]).permute(3, 2, 0, 1)
                values = conv2d(values if k == 0 else values.relu_(), filters, biases)
        return values[0, 0]

    def _cut(self, frame: Tensor, tiles: Tiles) -> Tensor:
        """Return the tiles (rows, columns, size, size) of a frame, with means subtracted and the window applied."""
        down, right = self._mirrored(tiles)
        window = self._window(tiles)
        padded = frame.index_select(0, down).index_select(1, right)
        raw = padded.unfold(0, tiles.size, tiles.stride).unfold(1, tiles.size, tiles.stride)
        means = torch.einsum("rcij,ij->rc", raw, window / window.sum())
        return (raw - means[:, :, None, None]) * window

    def _joined(self, parts: Tensor, tiles: Tiles) -> Tensor:
        """Return the weighted overlap-add (n, height, width) of n sets of tiles (n, rows, columns, size, size)."""
        n, rows, columns, size, _ = parts.shape
        columns_of_tiles = (parts * self._window(tiles)).reshape(n, rows * columns, size * size).mT
        extent = [(count - 1) * tiles.stride + size for count in (rows, columns)]
        total = fold(columns_of_tiles, extent, size, stride=tiles.stride)[:, 0]
        down, right = (slice(tiles.lead, tiles.lead + length) for length in tiles.shape)
        return total[:, down, right] / self._weight(tiles)

    def _indices(self, values: AnyArray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, np.int64)).to(self._place)

    def _places_of_neighbours(self, shape: tuple[int, int], offsets: tuple[tuple[int, int], ...]) -> Tensor:
        """Return flat pixel indices (n_offsets * height * width,): for each offset, the neighbours of all pixels."""
        y, x = np.mgrid[: shape[0], : shape[1]]
        near = [
            np.clip(y + down, 0, shape[0] - 1) * shape[1] + np.clip(x + right, 0, shape[1] - 1)
            for down, right in offsets
        ]
        return self._indices(np.array(near).reshape(-1))


def _moments(candidates: Tensor, change: Tensor, cell: tuple[int, int], layout: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return, for each cell, the Gram matrix of n candidates and their inner products with the true change.

    The shapes are (rows, columns, n, n) and (rows, columns, n), with (rows, columns) given by `layout`.
    """
    n = len(candidates)
    seen = _split(torch.cat([candidates, change[None]]), cell, layout)
    found = seen[:, :, :n] @ seen.mT
    return found[..., :n], found[..., n]


def _split(maps: Tensor, cell: tuple[int, int], layout: Sequence[int]) -> Tensor:
    """Return maps (n, height, width) cut into cells (rows, columns, n, pixels), with zeros beyond the frame."""
    n, height, width = maps.shape
    (tall, wide), (rows, columns) = cell, layout
    padded = pad(maps, (0, columns * wide - width, 0, rows * tall - height))
    by_cell = padded.reshape(n, rows, tall, columns, wide).permute(1, 3, 0, 2, 4)
    return by_cell.reshape(rows, columns, n, tall * wide)


def _cell_weights(
    moments: tuple[Tensor, ...], ridge: Tensor, known: tuple[Tensor, ...], *, prior: float, first: int, last: int
) -> Tensor:
    """Return the ridge weights (last - first, columns, n) of rows of cells; see `FrameKernels.cell_weights`."""
    # Pooling does not change the mean.
    whole, right = (part.mean(dim=(0, 1), dtype=torch.float64) for part in moments)
    if known:
        whole, right = whole + known[0], right + known[1]
    usual = whole.diagonal()
    floor = 1e-6 * usual.mean() + 1e-30
    common = torch.linalg.solve_ex(whole + torch.diag(prior * usual + floor), right)[0].float()
    # Pooling needs one more row at each end, if there is one.
    above = max(first - 1, 0)
    own, own_match = (_pooled(part[above : last + 1])[first - above :][: last - first] for part in moments)
    pull = (ridge * usual + floor).float() + ridge * own.diagonal(dim1=2, dim2=3)
    own.diagonal(dim1=2, dim2=3).add_(pull)
    return _solved(own, own_match + pull * common)


def _solved(matrices: Tensor, sides: Tensor) -> Tensor:
    """Return the solutions (..., n) of positive definite systems (..., n, n) with right-hand sides `sides` (..., n)."""
    n = sides.shape[-1]
    threads, shared = -(-n // 32) * 32, 4 * n * (n + 2)
    compiled = kernel("cells.cu", "solve", sides.dtype, sides.device, threads) if threads <= 1024 else None
    if compiled is None or shared > compiled.shared_bytes:
        # This is slower, and a CUDA graph cannot capture it.
        return torch.cholesky_solve(sides[..., None], torch.linalg.cholesky_ex(matrices)[0])[..., 0]
    solved = sides.contiguous().clone()
    compiled(sides.numel() // n, threads, shared, matrices.contiguous(), solved, n)
    return solved


def _pooled(moments: Tensor) -> Tensor:
    """Return moments (rows, columns, ...) smoothed by the binomial kernel (1, 2, 1) / 4 along both axes."""
    for _ in range(2):
        padded = torch.cat([moments[:1], moments, moments[-1:]])
        moments = torch.add(0.25 * (padded[2:] + padded[:-2]), moments, alpha=0.5).transpose(0, 1)
    return moments.contiguous()


def _turn(cross: Tensor) -> Tensor:
    """Return the phase factors ``x / |x|`` of cross-spectra x, or 1 where x is zero."""
    turn = cross.sgn()
    return turn + (1 - turn.abs().sign())


def _blocks(pixels: Tensor) -> int:
    return -(-int(pixels.numel()) // _THREADS)


def _catmull_rom(t: Tensor) -> Tensor:
    """Return interpolation weights (4, ...) of four pixels in a row, at fraction `t` from the second to the third."""
    return 0.5 * torch.stack(
        [t * (t * (2 - t) - 1), t * t * (3 * t - 5) + 2, t * (t * (4 - 3 * t) + 1), t * t * (t - 1)]
    )


def _places(height: int, width: int, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows and the columns (height, width) to which the flow leads from each pixel, clipped to the frame."""
    rows = torch.arange(height, device=flow.device, dtype=flow.dtype)[:, None]
    columns = torch.arange(width, device=flow.device, dtype=flow.dtype)
    return (rows + flow[0]).clip(0, height - 1), (columns + flow[1]).clip(0, width - 1)


def _between(frames: Tensor, grid: Tensor) -> Tensor:
    """Return the values (n, ...) of frames (n, height, width) at positions (..., 2), by bilinear interpolation.

    A position is (column, row), from -1 at one edge to 1 at the other. Positions outside take the nearest edge's value.
    """
    return grid_sample(frames[None], grid[None], mode="bilinear", padding_mode="border", align_corners=True)[0]


def _refined(before: Tensor, now: Tensor, flow: Tensor) -> Tensor:
    """Return the flow (2, height, width) from `now` back to `before`, improved by Gauss-Newton steps."""
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
    # A flow that fits worse than before is reset, and zero flow wins a tie.
    misfits = _blurred(torch.stack([gap(flow), gap(refined), before - now]).square_())
    back = misfits[0] < misfits[1]
    chosen, error = torch.where(back, flow, refined), torch.where(back, misfits[0], misfits[1])
    return _blurred(torch.where(misfits[2] <= error, 0.0, chosen))


@lru_cache(32)
def _grid(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the positions (height, width, 2) of all pixels and the size (2,) of a pixel, in units of `_between`."""
    height, width = shape
    scale = torch.tensor([2 / max(width - 1, 1), 2 / max(height - 1, 1)], dtype=dtype)
    columns, rows = torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy")
    still = torch.stack([columns, rows], dim=-1) * scale - 1
    return still.to(device), scale.to(device)


def _blurred(values: Tensor) -> Tensor:
    """Return values (n, height, width) smoothed by applying a box filter twice."""
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
    """Return the frame (height, width) smoothed and reduced to half its size. An odd last row or column is left out."""
    height, width = (length // 2 * 2 for length in frame.shape)
    padded = pad(frame[None, None, :height, :width], (1, 1, 1, 1), mode="replicate")[0, 0]
    rows = 0.125 * (padded[0:-2:2] + padded[3::2]) + 0.375 * (padded[1:-2:2] + padded[2:-1:2])
    return 0.125 * (rows[:, 0:-2:2] + rows[:, 3::2]) + 0.375 * (rows[:, 1:-2:2] + rows[:, 2:-1:2])


def _doubled(flow: Tensor, height: int, width: int) -> Tensor:
    """Return a flow (2, height, width) of twice the resolution: interpolated bilinearly and multiplied by two."""
    tall, wide = flow.shape[1:]
    rows = 0.5 * torch.arange(height, device=flow.device, dtype=flow.dtype) - 0.25
    columns = 0.5 * torch.arange(width, device=flow.device, dtype=flow.dtype) - 0.25
    places = (2 * columns / max(wide - 1, 1) - 1).expand(height, width), 2 * rows[:, None] / max(tall - 1, 1) - 1
    return 2 * _between(flow, torch.stack([places[0], places[1].expand(height, width)], dim=-1))
