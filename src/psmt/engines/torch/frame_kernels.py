"""Kernels for whole frames on a torch device: see `psmt.engines.frame_kernels.FrameKernels`.

Each is a handful of launches, whatever the number of tiles and cells, and none looks at a result on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

from psmt.engines.frame_kernels import Tiles, Work
from psmt.engines.torch.flow import flow_between, moved
from psmt.engines.torch.graphs import Captured
from psmt.engines.torch.nvrtc import kernel
from psmt.types import AnyArray

_Layers = tuple[tuple[Tensor, Tensor], ...]

_SENT = 1 << 23
"""Bytes up to which arrays are sent to a GPU without waiting for what it is doing: that needs memory of its own."""


class TorchFrameKernels:
    """Kernels whose arrays are tensors of float32 and complex64 on the device.

    What depends on the size of frames alone (windows, places of pixels, filters) is made once and kept there.
    """

    def __init__(self, place: torch.device) -> None:
        self._place = place
        self._window = lru_cache(8)(lambda tiles: self.levels(tiles.window))
        self._weight = lru_cache(8)(lambda tiles: self.levels(tiles.weight))
        self._mirrored = lru_cache(8)(lambda tiles: tuple(map(self._indices, tiles.mirrored)))
        self._gaussian = lru_cache(8)(
            lambda n, width: self.levels(gaussian_filter1d(np.eye(n), width, axis=0, mode="reflect"))
        )
        self._shifted = lru_cache(8)(self._places_of_neighbours)
        self._cell_weights = Captured(_cell_weights)

    def __reduce__(self) -> tuple[type[TorchFrameKernels], tuple[torch.device]]:
        # What is kept on the device is made again where it is needed.
        return TorchFrameKernels, (self._place,)

    def levels(self, values: ArrayLike) -> Tensor:
        """Own tensor of float32 with these values, or of complex64 where they are complex."""
        if isinstance(values, Tensor):
            return values
        given = np.asarray(values)
        dtype = np.complex64 if np.iscomplexobj(given) else np.float32
        own = torch.from_numpy(np.require(given, dtype, ["C", "W"]))
        if self._place.type != "cuda" or own.nbytes > _SENT:
            return own.to(self._place)
        sent = torch.empty_like(own, pin_memory=True)
        sent.numpy()[...] = own.numpy()  # torch would wake all its threads for it
        return sent.to(self._place, non_blocking=True)

    def numpy(self, values: Tensor) -> AnyArray:
        """A NumPy array with the values of an own tensor."""
        return np.asarray(values.cpu().numpy())

    def capture(self, work: Work) -> Work:
        """The work as one launch on a GPU."""
        return cast(Work, Captured(work))

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        """What each piece of work returns, one after the other."""
        return [work() for work in works]

    def spectra(self, frame: Tensor, tiles: Tiles) -> Tensor:
        """Fourier coefficients (rows, columns, size, size // 2 + 1) of the tiles of a frame."""
        return torch.fft.rfft2(self._cut(frame, tiles))

    def next_spectra(
        self, frame: Tensor, tiles: Tiles, before: Tensor, cross: tuple[Tensor, ...], kept: tuple[float, ...]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`spectra` of a frame, and cross-spectra ``kept * cross + now * conj(before)``; none is changed in place."""
        now = self.spectra(frame, tiles)
        turn = now * before.conj()
        return now, tuple(torch.add(turn, old, alpha=memory) for memory, old in zip(kept, cross, strict=True))

    def advanced(self, now: Tensor, cross: tuple[Tensor, ...], tiles: Tiles) -> Tensor:
        """Changes (n, height, width) of a frame if its coefficients turn on by the phases of n cross-spectra."""
        change = torch.stack([now * _turn(by) - now for by in cross])
        return self._joined(torch.fft.irfft2(change, s=(tiles.size, tiles.size)), tiles)

    def flow(self, before: Tensor, now: Tensor) -> Tensor:
        """Where each pixel of a frame came from in the one before, (2, height, width): pyramidal Lucas-Kanade."""
        return flow_between(before, now)

    def moved(self, frame: Tensor, flow: Tensor) -> Tensor:
        """The frame (height, width) read at (y, x) + flow[:, y, x], by Catmull-Rom interpolation; the edge goes on."""
        return moved(frame, flow)

    def bands(self, changes: Tensor, widths: tuple[float, ...], parts: Tensor) -> None:
        """Fill the bands (n_widths + 1, n, height, width), fine first, of changes (n, height, width)."""
        # Products with matrices that mirror at the edge, not convolutions, which may round to ten bits.
        for fine, width in zip(parts, widths, strict=False):
            down, right = (self._gaussian(length, width) for length in changes.shape[1:])
            smooth = down @ changes @ right.mT
            torch.sub(changes, smooth, out=fine)
            changes = smooth
        parts[-1] = changes

    def neighbours(self, frame: Tensor, offsets: tuple[tuple[int, int], ...], base: Tensor, found: Tensor) -> None:
        """Fill the levels (n, height, width) of the pixels so far (down, right) of each, less `base`."""
        places = self._shifted(tuple(frame.shape), offsets)
        torch.sub(frame.reshape(-1).index_select(0, places).reshape(len(offsets), *frame.shape), base, out=found)

    def cell_moments(self, candidates: Tensor, change: Tensor, cell: int) -> tuple[Tensor, Tensor]:
        """Inner products by cell: (rows, columns, n, n) and (rows, columns, n)."""
        layout = [-(-length // cell) for length in change.shape]
        return _moments(candidates, change, (cell, cell), layout)

    def add_moments(
        self,
        gram: Tensor,
        match: Tensor,
        kept: float,
        candidates: Tensor,
        change: Tensor,
        weight: float,
        cell: tuple[int, int],
    ) -> None:
        """Scale moments by `kept` and add those of cells so tall and wide, times the weight, to them in place."""
        new_gram, new_match = _moments(candidates, change, cell, match.shape[:2])
        gram.mul_(kept).add_(new_gram, alpha=weight)
        match.mul_(kept).add_(new_match, alpha=weight)

    def cell_energy(self, change: Tensor, cell: int) -> Tensor:
        """Sum of squares (rows, columns) of a change (height, width) by cell."""
        layout = [-(-length // cell) for length in change.shape]
        return _split(change[None], (cell, cell), layout).square().sum(dim=(2, 3))

    def cell_weights(
        self,
        gram: Tensor,
        match: Tensor,
        ridge: float,
        prior: float,
        known: tuple[NDArray[np.float32], NDArray[np.float32]] | None,
        rows: slice = slice(None),
    ) -> Tensor:
        """Ridge-regression weights (rows, columns, n) of cells, from moments pooled with those of the cells around."""
        first, last, _ = rows.indices(len(gram))
        given = () if known is None else (self.levels(known[0]), self.levels(known[1]))
        found = self._cell_weights((gram, match), self.levels(ridge), given, prior=prior, first=first, last=last)
        return cast(Tensor, found)

    def weighted(self, candidates: Tensor, weights: Tensor, cell: int) -> Tensor:
        """Sum (height, width) of candidates with weights (rows, columns, n), interpolated bilinearly."""
        height, width = candidates.shape[1:]
        fields = torch.nn.functional.interpolate(
            weights.permute(2, 0, 1)[None], scale_factor=float(cell), mode="bilinear", align_corners=False
        )[0, :, :height, :width]
        return (candidates * fields).sum(dim=0)

    def perceptron(self, inputs: tuple[Tensor, ...], layers: _Layers) -> Tensor:
        """Output (height, width) of a network at every pixel, from inputs (n, height, width), some here, some there."""
        values = torch.cat(inputs).reshape(len(layers[0][0]), -1)
        for k, (weights, biases) in enumerate(layers):
            values = torch.addmm(biases[:, None], weights.mT, values if k == 0 else values.relu_())
        return values.reshape(inputs[0].shape[1:])

    def _cut(self, frame: Tensor, tiles: Tiles) -> Tensor:
        """Tiles (rows, columns, size, size) of a frame under the window, less their weighted means."""
        down, right = self._mirrored(tiles)
        window = self._window(tiles)
        padded = frame.index_select(0, down).index_select(1, right)
        raw = padded.unfold(0, tiles.size, tiles.stride).unfold(1, tiles.size, tiles.stride)
        means = torch.einsum("rcij,ij->rc", raw, window / window.sum())
        return (raw - means[:, :, None, None]) * window

    def _joined(self, parts: Tensor, tiles: Tiles) -> Tensor:
        """Weighted overlap-add (n, height, width) of n sets of tiles (n, rows, columns, size, size)."""
        n, rows, columns, size, _ = parts.shape
        columns_of_tiles = (parts * self._window(tiles)).reshape(n, rows * columns, size * size).mT
        extent = [(count - 1) * tiles.stride + size for count in (rows, columns)]
        total = torch.nn.functional.fold(columns_of_tiles, extent, size, stride=tiles.stride)[:, 0]
        down, right = (slice(tiles.lead, tiles.lead + length) for length in tiles.shape)
        return total[:, down, right] / self._weight(tiles)

    def _indices(self, values: AnyArray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, np.int64)).to(self._place)

    def _places_of_neighbours(self, shape: tuple[int, int], offsets: tuple[tuple[int, int], ...]) -> Tensor:
        """Where in a frame, row after row, the neighbours of all pixels are: (n_offsets height width,)."""
        y, x = np.mgrid[: shape[0], : shape[1]]
        near = [
            np.clip(y + down, 0, shape[0] - 1) * shape[1] + np.clip(x + right, 0, shape[1] - 1)
            for down, right in offsets
        ]
        return self._indices(np.array(near).reshape(-1))


def _moments(candidates: Tensor, change: Tensor, cell: tuple[int, int], layout: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Inner products by cell: (*layout, n, n) and (*layout, n)."""
    n = len(candidates)
    seen = _split(torch.cat([candidates, change[None]]), cell, layout)
    found = seen[:, :, :n] @ seen.mT
    return found[..., :n], found[..., n]


def _split(maps: Tensor, cell: tuple[int, int], layout: Sequence[int]) -> Tensor:
    """Maps (n, height, width) by cell (*layout, n, pixels); what is beyond the frame is zero."""
    n, height, width = maps.shape
    (tall, wide), (rows, columns) = cell, layout
    padded = torch.nn.functional.pad(maps, (0, columns * wide - width, 0, rows * tall - height))
    by_cell = padded.reshape(n, rows, tall, columns, wide).permute(1, 3, 0, 2, 4)
    return by_cell.reshape(rows, columns, n, tall * wide)


def _cell_weights(
    moments: tuple[Tensor, ...], ridge: Tensor, known: tuple[Tensor, ...], *, prior: float, first: int, last: int
) -> Tensor:
    """See `FrameKernels.cell_weights`."""
    # Pooling leaves the mean as it is.
    whole, right = (part.mean(dim=(0, 1), dtype=torch.float64) for part in moments)
    if known:
        whole, right = whole + known[0], right + known[1]
    usual = whole.diagonal()
    floor = 1e-6 * usual.mean() + 1e-30
    common = torch.linalg.solve_ex(whole + torch.diag(prior * usual + floor), right)[0].float()
    # Pooling looks one row beyond, where there is one.
    above = max(first - 1, 0)
    own, own_match = (_pooled(part[above : last + 1])[first - above :][: last - first] for part in moments)
    pull = (ridge * usual + floor).float() + ridge * own.diagonal(dim1=2, dim2=3)
    own.diagonal(dim1=2, dim2=3).add_(pull)
    return _solved(own, own_match + pull * common)


def _solved(matrices: Tensor, sides: Tensor) -> Tensor:
    """Solutions (.., n) of symmetric positive systems (.., n, n)."""
    n = sides.shape[-1]
    threads, shared = -(-n // 32) * 32, 4 * n * (n + 2)
    compiled = kernel("cells.cu", "solve", sides.dtype, sides.device, threads) if threads <= 1024 else None
    if compiled is None or shared > compiled.shared_bytes:
        # Slower, and with torch's libraries no work that a graph can hold.
        return torch.cholesky_solve(sides[..., None], torch.linalg.cholesky_ex(matrices)[0])[..., 0]
    solved = sides.contiguous().clone()
    compiled(sides.numel() // n, threads, shared, matrices.contiguous(), solved, n)
    return solved


def _pooled(moments: Tensor) -> Tensor:
    """Moments (rows, columns, ..) smoothed by the binomial kernel (1, 2, 1) / 4 along both axes, contiguous."""
    for _ in range(2):
        padded = torch.cat([moments[:1], moments, moments[-1:]])
        moments = torch.add(0.25 * (padded[2:] + padded[:-2]), moments, alpha=0.5).transpose(0, 1)
    return moments.contiguous()


def _turn(cross: Tensor) -> Tensor:
    """Phase factors of cross-spectra, 1 where there is none: sgn is x / |x|, and zero at zero."""
    turn = cross.sgn()
    return turn + (1 - turn.abs().sign())
