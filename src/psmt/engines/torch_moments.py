"""The sliding window of codes and its moments in torch: `psmt.moments.WindowMoments` with dense sums on a device."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from psmt.moments import FALL, STILL, Change, SlidingWindow, change_weights


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
        self._peak = self._buffer.new_zeros(2)
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

    def _oldest(self) -> Tensor:
        return self.codes[:3].clone()

    def _youngest(self) -> Tensor:
        return self.latest(3).clone()

    def _change(self, vectors: list[Tensor], *, centred: bool, ends: bool) -> Change:
        key = (self._n, centred, ends)
        if key not in self._weights:  # they go to the device once, not at every slide
            weights = change_weights(self._n, centred=centred, ends=ends)
            self._weights = {key: tuple(torch.from_numpy(part).to(self.device) for part in weights)}
        return Change(torch.stack(vectors), *self._weights[key])

    def covariance(self, *, centred: bool = True) -> Tensor:
        """V (n_features, n_features)."""
        n = self._n
        if not centred:
            return self.products / n
        covariance = torch.addr(self.products, self.total, self.total, alpha=-1.0 / n) / (n - 1)
        moves = covariance.diagonal() > STILL * self.products.diagonal() / n
        return covariance * (moves[:, None] & moves)

    def second_differences(self, *, ends: bool = False) -> Tensor:
        """S (n_features, n_features), with half stencils at both ends or without."""
        if not ends:
            return self.curvature
        bends = self._end_bends()
        return self.curvature + bends.T @ bends

    def variances(self, *, centred: bool = True) -> Tensor:
        """Diagonal (n_features,) of V."""
        n, squares = self._n, self.products.diagonal()
        return (squares - self.total**2 / n) / (n - 1) if centred else squares / n

    def covariance_times(self, vectors: Tensor, *, centred: bool = True) -> Tensor:
        """V times the columns of `vectors` (n_features, n), without making V."""
        n, products = self._n, self.products @ vectors
        if not centred:
            return products / n
        return products.addr_(self.total, self.total @ vectors, alpha=-1.0 / n).div_(n - 1)

    def second_differences_times(self, vectors: Tensor, *, ends: bool = False) -> Tensor:
        """S times the columns of `vectors` (n_features, n)."""
        products = self.curvature @ vectors
        if ends:
            bends = self._end_bends()
            products += bends.T @ (bends @ vectors)
        return products

    def _end_bends(self) -> Tensor:
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

    def _take(self, code: Tensor) -> None:
        if self._first + self._n == len(self._buffer):
            self._renew_buffer(self.codes)
        self._buffer[self._first + self._n] = code
        self._activity[self._first + self._n] = code.sum()
        self._n += 1
        self.total += code
        self.products.addr_(code, code)
        self.uses += (code != 0).long()
        if self._n >= 3:
            bend = _bends(self.latest(3))[0]
            self.curvature.addr_(bend, bend)
        self._peak = torch.maximum(self._peak, self._energy())

    def _release(self) -> None:
        code = self.codes[0].clone()
        if self._n >= 3:
            bend = _bends(self.codes[:3])[0]
            self.curvature.addr_(bend, bend, alpha=-1.0)
        self.total -= code
        self.products.addr_(code, code, alpha=-1.0)
        self.uses -= (code != 0).long()
        self._first += 1
        self._n -= 1
        self._reverted += 1
        unused = (code != 0) & (self.uses == 0)
        left, fallen = torch.stack([unused.any(), (self._energy() < FALL * self._peak).any()]).tolist()
        if self._reverted >= max(self._n, 1) or fallen:
            self._refresh()
        elif left:
            # What is left of an atom that no code uses any more is rounding.
            self.total[unused] = 0.0
            for matrix in (self.products, self.curvature):
                matrix[unused] = 0.0
                matrix[:, unused] = 0.0

    def _energy(self) -> Tensor:
        """Size of the two sums of products."""
        return torch.stack([self.products.diagonal().sum(), self.curvature.diagonal().sum()])

    def _refresh(self) -> None:
        self._reverted = 0
        codes = self.codes
        self.total = codes.sum(0)
        self.uses = (codes != 0).sum(0)
        self.products = codes.T @ codes
        bends = _bends(codes) if len(codes) >= 3 else codes[:0]
        self.curvature = bends.T @ bends
        self._peak = self._energy()
