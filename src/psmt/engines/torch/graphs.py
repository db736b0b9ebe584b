"""CUDA graphs: work on tensors that is made of many small operations, recorded once, launched as one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor

_KEPT = 16
"""Recordings that are kept, by shape; each holds the memory that its work needs."""

_RECORDING = Lock()
"""One at a time."""


class _Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph | None
    """None for work that torch cannot record: it is just done."""
    given: list[Tensor]
    fixed: tuple[Tensor, ...]
    found: list[Tensor]


class Recorded:
    """Work that never looks at a result, as one launch on a GPU; elsewhere it is just done.

    Parameters
    ----------
    work : callable
        Called with tensors and settings, it returns a tuple of tensors. It may change the `fixed` ones in place.
    """

    def __init__(self, work: Callable[..., tuple[Tensor, ...]]) -> None:
        self._work = work
        self._kept: dict[tuple[object, ...], _Recording] = {}
        self._busy = Lock()

    def __reduce__(self) -> tuple[type[Recorded], tuple[Callable[..., tuple[Tensor, ...]]]]:
        # What was recorded can be neither copied nor written down.
        return Recorded, (self._work,)

    def __call__(self, *given: Tensor, fixed: tuple[Tensor, ...] = (), **settings: Any) -> tuple[Tensor, ...]:
        """What the work makes of the given tensors, which are copied, and the fixed ones, which stay in their place."""
        if not given[0].is_cuda:
            return self._work(*given, *fixed, **settings)
        shapes = [(tensor.shape, tensor.dtype, tensor.device) for tensor in given]
        with self._busy, torch.cuda.device(given[0].device):
            places = [(tensor.data_ptr(), tensor.shape) for tensor in fixed]
            key = (torch.cuda.current_stream().cuda_stream, *shapes, *places, *settings.items())
            recording = self._kept.pop(key, None)
            if recording is None:
                while len(self._kept) >= _KEPT:
                    del self._kept[next(iter(self._kept))]
                recording = self._record(given, fixed, settings)
            self._kept[key] = recording  # the latest is the last
            if recording.graph is None:
                return self._work(*given, *fixed, **settings)
            torch._foreach_copy_(recording.given, list(given))
            recording.graph.replay()
            copies = [torch.empty_like(tensor) for tensor in recording.found]
            torch._foreach_copy_(copies, recording.found)
            return tuple(copies)

    def _record(self, given: tuple[Tensor, ...], fixed: tuple[Tensor, ...], settings: dict[str, Any]) -> _Recording:
        own = [torch.empty_like(tensor, memory_format=torch.contiguous_format).copy_(tensor) for tensor in given]
        graph, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with _RECORDING, torch.cuda.stream(aside):
            # The first run loads kernels and sets up libraries, which must not be recorded. It works on copies.
            self._work(*own, *(tensor.clone() for tensor in fixed), **settings)
            torch.cuda.synchronize()
            try:
                graph.capture_begin(capture_error_mode="thread_local")  # other threads may go on
                try:
                    found = list(self._work(*own, *fixed, **settings))
                finally:
                    graph.capture_end()
            except RuntimeError as error:
                name = self._work.__name__
                warnings.warn(f"{name} cannot be recorded and is launched piece by piece: {error}", stacklevel=3)
                return _Recording(None, [], fixed, [])
        torch.cuda.current_stream().wait_stream(aside)
        return _Recording(graph, own, fixed, found)
