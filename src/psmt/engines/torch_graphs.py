"""CUDA graphs: a fixed sequence of operations, recorded once, launched as one."""

from __future__ import annotations

from collections.abc import Callable

import torch


def recorded(work: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """`work` as a CUDA graph, or as it is where there is no GPU.

    `work` reads and writes tensors that stay where they are, and never looks at a result. It runs while it is recorded:
    what it writes must not matter yet.
    """
    if device.type != "cuda":
        return work
    # The first runs load kernels and set up libraries, which must not be recorded.
    aside = torch.cuda.Stream(device)
    aside.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(aside):
        for _ in range(2):
            work()
    torch.cuda.current_stream(device).wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay
