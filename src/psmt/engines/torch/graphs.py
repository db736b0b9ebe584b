"""CUDA graphs: work on tensors that is made of many small operations, captured once, launched as one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from psmt.engines.contract import Resident

_KEPT = 16
"""Captures that are kept, by shape; each holds the memory that its work needs."""

_CAPTURING = Lock()
"""One at a time."""

A = TypeVar("A")


class _Capture(NamedTuple):
    graph: torch.cuda.CUDAGraph | None
    """None for work that torch cannot capture: it is just done."""
    copied: list[Tensor]
    resident: list[Tensor]
    found: Any
    """What the work returns: its tensors are the graph's own."""


class Captured:
    """Work that never looks at a result, as one launch on a GPU; elsewhere it is just done.

    Parameters
    ----------
    work : callable
        Called with tensors, `Resident` objects, constants or tuples of all these, and settings, it returns a tensor or
        a tuple of such. It may change in place what is resident, and nothing else.
    """

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self._kept: dict[tuple[object, ...], _Capture] = {}
        self._busy = Lock()

    def __reduce__(self) -> tuple[type[Captured], tuple[Callable[..., Any]]]:
        # A graph can be neither copied nor written down.
        return Captured, (self._work,)

    def __call__(self, *arguments: Any, **settings: Hashable) -> Any:
        """What the work makes of the arguments; their tensors are copied in, but for those that are resident."""
        copied, resident, constants = _parts(arguments)
        if not copied[0].is_cuda:
            return self._work(*arguments, **settings)
        shapes = [(tensor.shape, tensor.dtype, tensor.device) for tensor in copied]
        with self._busy, torch.cuda.device(copied[0].device):
            places = [(tensor.data_ptr(), tensor.shape) for tensor in resident]
            stream = torch.cuda.current_stream(copied[0].device)
            key = (stream.cuda_stream, *shapes, *places, *constants, *settings.items())
            capture = self._kept.pop(key, None)
            if capture is None:
                while len(self._kept) >= _KEPT:
                    del self._kept[next(iter(self._kept))]
                capture = self._capture(arguments, copied, resident, settings)
            self._kept[key] = capture  # the latest is the last
            if capture.graph is None:
                return self._work(*arguments, **settings)
            torch._foreach_copy_(capture.copied, copied)
            capture.graph.replay()
            found, _, _ = _parts(capture.found)
            copies = [torch.empty_like(tensor) for tensor in found]
            if copies:
                torch._foreach_copy_(copies, found)
            return _rebuilt(capture.found, copies, [])

    def _capture(
        self,
        arguments: tuple[Any, ...],
        copied: list[Tensor],
        resident: list[Tensor],
        settings: dict[str, Hashable],
    ) -> _Capture:
        own = [torch.empty_like(tensor, memory_format=torch.contiguous_format).copy_(tensor) for tensor in copied]
        graph, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with _CAPTURING, torch.cuda.stream(aside):
            # The first run loads kernels and sets up libraries, which must not be captured. It works on copies.
            self._work(*_rebuilt(arguments, own, [tensor.clone() for tensor in resident]), **settings)
            torch.cuda.synchronize()
            try:
                graph.capture_begin(capture_error_mode="thread_local")  # other threads may go on
                try:
                    found = self._work(*_rebuilt(arguments, own, resident), **settings)
                finally:
                    graph.capture_end()
            except RuntimeError as error:
                name = self._work.__name__
                warnings.warn(f"{name} cannot be captured and is launched piece by piece: {error}", stacklevel=3)
                return _Capture(None, [], resident, ())
        torch.cuda.current_stream().wait_stream(aside)
        return _Capture(graph, own, resident, found)


def _parts(arguments: object) -> tuple[list[Tensor], list[Tensor], list[Hashable]]:
    """All tensors to copy, all that are resident, and all constants of the arguments, in order."""
    copied: list[Tensor] = []
    resident: list[Tensor] = []
    constants: list[Hashable] = []

    def collect(argument: object) -> None:
        if isinstance(argument, Tensor):
            copied.append(argument)
        elif isinstance(argument, Resident):
            for whole, own in zip((copied, resident, constants), argument.parts(), strict=True):
                whole += own
        elif isinstance(argument, tuple):
            for one in argument:
                collect(one)
        else:
            constants.append(argument)

    collect(arguments)
    return copied, resident, constants


def _rebuilt(arguments: A, copied: list[Tensor], resident: list[Tensor]) -> A:
    """The arguments, made of other tensors."""
    inputs, stay = iter(copied), iter(resident)

    def rebuild(argument: Any) -> Any:
        if isinstance(argument, Tensor):
            return next(inputs)
        if isinstance(argument, Resident):
            shown, kept, _ = argument.parts()
            return argument.with_arrays(tuple(next(inputs) for _ in shown), tuple(next(stay) for _ in kept))
        if isinstance(argument, tuple):
            parts = [rebuild(one) for one in argument]
            return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
        return argument

    return cast(A, rebuild(arguments))
