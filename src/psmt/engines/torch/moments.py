"""The sliding window of codes and its moments in torch: `psmt.moments.WindowMoments` with dense sums on a device."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from psmt.engines.torch.graphs import Recorded
from psmt.moments import FALL, STILL, Change, Slide, SlidingWindow, change_weights


def _bends(codes: Tensor) -> Tensor:
    """Second differences (n - 2, n_features) of codes (n, n_features)."""
    return codes[1:-1] - 0.5 * (codes[:-2] + codes[2:])


class TorchMoments(SlidingWindow):
    """Codes of a window that grows at its young end (`update`), shrinks at its old end (`revert`), or does both.

    As `psmt.moments.WindowMoments`, with tensors in the place of arrays. A slide costs four passes over matrices of
    ``n_features ** 2``, whatever the window holds.
    """

    def __init__(self, n_features: int, device: torch.device) -> None:
        super().__init__()
        self.n_features = n_features
        self.device = device
        self._weights: dict[tuple[int, bool, bool], tuple[Tensor, Tensor]] = {}
        # The window is the part [first, first + n) of a buffer, which is made anew when its end is reached.
        self._buffer = torch.zeros(8, n_features, dtype=torch.float64, device=device)
        self._activity = torch.zeros(8, dtype=torch.float64, device=device)
        self._first = self._n = 0
        self.total = self._buffer.new_zeros(n_features)
        self.uses = torch.zeros(n_features, dtype=torch.int64, device=device)
        self.products, self.curvature = self._buffer.new_zeros(2, n_features, n_features).unbind()
        self._peak = self._buffer.new_zeros(2)
        # On the host, where the device writes to without being waited for.
        self._fallen = torch.zeros((), dtype=torch.bool, pin_memory=device.type == "cuda")
        self._slide_sums = Recorded(_slide_sums)
        self._refresh()

    @classmethod
    def of(cls, codes: Tensor) -> Self:
        """Moments of a whole window of codes (time, n_features) at once."""
        moments = cls(codes.shape[1], codes.device)
        moments._renew_buffer(codes)
        moments._refresh()
        return moments

    def __len__(self) -> int:
        return self._n

    @property
    def codes(self) -> Tensor:
        """The window (time, n_features), oldest first."""
        return self._buffer[self._first : self._first + self._n]

    def latest(self, count: int) -> Tensor:
        """The youngest codes (count, n_features), oldest first."""
        return self.codes[self._n - count :]

    @property
    def peak_activity(self) -> Tensor:
        """Largest sum of a code in the window."""
        return self._activity[self._first : self._first + self._n].max()

    def slide(self, code: Tensor) -> None:
        """Take in the code (n_features,) that follows the youngest and let go of the oldest: what changed is kept.

        As taking in and letting go one after the other, but the host does not wait: that sums have fallen far below
        their peak is seen at the next slide.
        """
        if self._n < 3:
            super().slide(code)
            return
        if bool(self._fallen):
            self._refresh()
        oldest, youngest = self.codes[:3].clone(), torch.cat([self.latest(2), code[None]])
        sums = (self.total, self.uses, self.products, self.curvature, self._peak)
        self._vectors, fallen = self._slide_sums(oldest, youngest, fixed=sums)
        self._fallen.copy_(fallen, non_blocking=True)
        self._append(code)
        self._drop_oldest()
        self.changes += 1
        self._slide = Slide(oldest, youngest, self._vectors[-1])
        if self._reverted >= self._n:
            self._refresh()

    def last_change(self, since: int, *, centred: bool = True, ends: bool = False) -> Change | None:
        """What the last slide did, if it is all that happened since there had been so many `changes`, else None."""
        if ends or self._slide is None or self._n < 3 or self.changes != since + 1:
            return super().last_change(since, centred=centred, ends=ends)
        return Change(self._vectors if centred else self._vectors[:-1], *self._change_weights(centred, ends))

    def _oldest(self) -> Tensor:
        return self.codes[:3].clone()

    def _youngest(self) -> Tensor:
        return self.latest(3).clone()

    def _change(self, vectors: list[Tensor], *, centred: bool, ends: bool) -> Change:
        return Change(torch.stack(vectors), *self._change_weights(centred, ends))

    def _change_weights(self, centred: bool, ends: bool) -> tuple[Tensor, ...]:
        key = (self._n, centred, ends)
        if key not in self._weights:  # they go to the device once, not at every slide
            weights = change_weights(self._n, centred=centred, ends=ends)
            self._weights = {key: tuple(torch.from_numpy(part).to(self.device) for part in weights)}
        return self._weights[key]

    def covariance(self, *, centred: bool = True) -> Tensor:
        """V (n_features, n_features)."""
        return covariance_of(self.products, self.total, self._n, centred=centred)

    def second_differences(self, *, ends: bool = False) -> Tensor:
        """S (n_features, n_features), with half stencils at both ends or without."""
        if not ends:
            return self.curvature
        bends = self.end_bends()
        return self.curvature + bends.T @ bends

    def variances(self, *, centred: bool = True) -> Tensor:
        """Diagonal (n_features,) of V."""
        return variances_of(self.products.diagonal(), self.total, self._n, centred=centred)

    def covariance_times(self, vectors: Tensor, *, centred: bool = True) -> Tensor:
        """V times the columns of `vectors` (n_features, n), without making V."""
        return covariance_times(vectors, self.products, self.total, self._n, centred=centred)

    def second_differences_times(self, vectors: Tensor, *, ends: bool = False) -> Tensor:
        """S times the columns of `vectors` (n_features, n)."""
        return second_differences_times(vectors, self.curvature, self.end_bends() if ends else self.codes[:0])

    def end_bends(self) -> Tensor:
        """Second differences (2, n_features) at the two ends."""
        codes = self.codes
        return torch.stack([codes[0] - 0.5 * codes[1], codes[-1] - 0.5 * codes[-2]])

    @property
    def state(self) -> dict[str, Tensor]:
        """Everything as tensors, rounding included, so that a copy goes on exactly alike."""
        return {
            "codes": self.codes,
            "products": self.products,
            "curvature": self.curvature,
            "total": self.total,
            "peak": self._peak,
            "reverted": torch.tensor(self._reverted),
        }

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> Self:
        """The object that `state` was taken from."""
        moments = cls.of(state["codes"])
        for name, own in moments.state.items():
            if state[name].shape != own.shape:
                raise ValueError(
                    f"{name} has shape {tuple(state[name].shape)}, but codes have {moments.n_features} features"
                )
        moments.products, moments.curvature = state["products"].clone(), state["curvature"].clone()
        moments.total, moments._peak = state["total"].clone(), state["peak"].clone()
        moments._reverted = int(state["reverted"])
        return moments

    def _renew_buffer(self, codes: Tensor) -> None:
        self._first, self._n = 0, len(codes)
        self._buffer = torch.cat([codes, torch.zeros_like(codes), codes.new_zeros(8, self.n_features)])
        self._activity = self._buffer.sum(1)

    def _append(self, code: Tensor) -> None:
        if self._first + self._n == len(self._buffer):
            self._renew_buffer(self.codes)
        self._buffer[self._first + self._n] = code
        self._activity[self._first + self._n] = code.sum()
        self._n += 1

    def _drop_oldest(self) -> None:
        self._first += 1
        self._n -= 1
        self._reverted += 1

    def _take(self, code: Tensor) -> None:
        self._append(code)
        _add(code, self.latest(3), self.total, self.uses, self.products, self.curvature)
        torch.maximum(self._peak, _energy(self.products, self.curvature), out=self._peak)

    def _release(self) -> None:
        code = self.codes[0].clone()
        _subtract(code, self.codes[:3], self.total, self.uses, self.products, self.curvature)
        self._drop_oldest()
        fallen = (_energy(self.products, self.curvature) < FALL * self._peak).any()
        if self._reverted >= max(self._n, 1) or bool(fallen):
            self._refresh()

    def _refresh(self) -> None:
        # In place, because slides are recorded with the sums where they are.
        self._reverted = 0
        self._fallen.zero_()
        codes = self.codes
        self.total.copy_(codes.sum(0))
        self.uses.copy_((codes != 0).sum(0))
        torch.mm(codes.T, codes, out=self.products)
        bends = _bends(codes) if len(codes) >= 3 else codes[:0]
        torch.mm(bends.T, bends, out=self.curvature)
        self._peak.copy_(_energy(self.products, self.curvature))


def covariance_of(products: Tensor, total: Tensor, n: int, *, centred: bool) -> Tensor:
    """V (n_features, n_features) of a window of n codes with these sums."""
    if not centred:
        return products / n
    covariance = torch.addr(products, total, total, alpha=-1.0 / n) / (n - 1)
    moves = covariance.diagonal() > STILL * products.diagonal() / n
    return covariance * (moves[:, None] & moves)


def variances_of(squares: Tensor, total: Tensor, n: int, *, centred: bool) -> Tensor:
    """Diagonal (n_features,) of V, given that of the products."""
    return (squares - total**2 / n) / (n - 1) if centred else squares / n


def covariance_times(vectors: Tensor, products: Tensor, total: Tensor, n: int, *, centred: bool) -> Tensor:
    """V times the columns of `vectors` (n_features, n), without making V."""
    images = products @ vectors
    if not centred:
        return images.div_(n)
    return images.addr_(total, total @ vectors, alpha=-1.0 / n).div_(n - 1)


def second_differences_times(vectors: Tensor, curvature: Tensor, ends: Tensor) -> Tensor:
    """S times the columns of `vectors` (n_features, n), with second differences (2 or 0, n_features) at the ends."""
    products = curvature @ vectors
    if len(ends):
        products += ends.T @ (ends @ vectors)
    return products


def _add(code: Tensor, latest: Tensor, total: Tensor, uses: Tensor, products: Tensor, curvature: Tensor) -> None:
    """Add a code (n_features,), the last of the latest up to 3, to the sums."""
    total += code
    products.addr_(code, code)
    uses += (code != 0).long()
    if len(latest) == 3:
        bend = _bends(latest)[0]
        curvature.addr_(bend, bend)


def _subtract(code: Tensor, oldest: Tensor, total: Tensor, uses: Tensor, products: Tensor, curvature: Tensor) -> None:
    """Take a code (n_features,), the first of the oldest up to 3, from the sums."""
    if len(oldest) == 3:
        bend = _bends(oldest)[0]
        curvature.addr_(bend, bend, alpha=-1.0)
    total -= code
    products.addr_(code, code, alpha=-1.0)
    uses -= (code != 0).long()
    # What is left of an atom that no code uses any more is rounding.
    unused = (code != 0) & (uses == 0)
    total.masked_fill_(unused, 0.0)
    for matrix in (products, curvature):
        matrix.masked_fill_(unused[:, None] | unused, 0.0)


def _slide_sums(
    oldest: Tensor, youngest: Tensor, total: Tensor, uses: Tensor, products: Tensor, curvature: Tensor, peak: Tensor
) -> tuple[Tensor, Tensor]:
    """Slide the sums; return the vectors of the `Change`, and whether the sums have fallen far below their peak."""
    slide = Slide(oldest.unbind(), youngest.unbind(), total)
    vectors = torch.stack(slide.vectors(centred=True, ends=False))
    _add(youngest[-1], youngest, total, uses, products, curvature)
    torch.maximum(peak, _energy(products, curvature), out=peak)
    _subtract(oldest[0], oldest, total, uses, products, curvature)
    return vectors, (_energy(products, curvature) < FALL * peak).any()


def _energy(products: Tensor, curvature: Tensor) -> Tensor:
    """Size of the two sums of products."""
    return torch.stack([products.diagonal().sum(), curvature.diagonal().sum()])
