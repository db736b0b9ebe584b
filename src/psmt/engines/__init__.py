"""Engines: the operations that take most of the time, implemented for each kind of hardware.

`psmt.engines.contract` declares what an engine must provide. Kernels take and return engine arrays, which stay on the
device. For each step, a model copies only one frame to the device and one frame back. Code outside this package uses
the functions of the array API standard on these arrays, so the same code runs on every engine.
"""

from __future__ import annotations

import os
from functools import lru_cache

from psmt.engines.contract import Engine, check_engine
from psmt.errors import DeviceError

__all__ = ["Engine", "engine_for", "engine_name"]


def engine_name(device: str, dtype: str = "float64") -> str:
    """Return one name for a device and a dtype, such as 'cuda/float32'. `engine_for` accepts it as a device."""
    return device if dtype == "float64" else f"{device}/{dtype}"


@lru_cache
def engine_for(device: str, dtype: str = "float64") -> Engine:
    """Return the engine of a device: 'cpu' (NumPy and compiled kernels), or 'cuda', 'cuda:1', ... (torch on a GPU).

    'torch:cpu' is the torch engine on a CPU. It is slow, but useful for tests. `device` may also be a name from
    `engine_name`. With dtype 'float32', which only torch devices accept, the lassos of coding and recovery are solved
    in single precision. Moments and embeddings stay in double precision. `DeviceError` is raised if the device or its
    dtype is unknown, torch is not installed, or there is no such GPU.
    """
    if not isinstance(device, str):
        raise DeviceError(f"device={device!r} is not the name of a device; use 'cpu', or 'cuda' for a GPU")
    device, _, given = device.partition("/")
    dtype = given or dtype
    if dtype not in ("float64", "float32"):
        raise DeviceError(f"dtype={dtype!r} is not known; use 'float64', or 'float32' on a GPU")
    if device == "cpu":
        if dtype != "float64":
            raise DeviceError(f"dtype={dtype!r} is for GPUs; device='cpu' computes in 'float64'")
        from psmt.engines.numba.engine import NumbaEngine

        return check_engine(NumbaEngine())
    name = device.removeprefix("torch:")
    if name.split(":")[0] != "cuda" and device != "torch:cpu":
        raise DeviceError(f"device={device!r} is not known; use 'cpu', or 'cuda' for a GPU")
    try:
        import torch
    except ImportError as error:
        raise DeviceError(
            f"device={device!r} needs PyTorch, which is not installed; "
            "install it with pip install 'psmt[gpu]', or use device='cpu'"
        ) from error
    if name != "cpu":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        number = name.partition(":")[2] or "0"
        if not number.isdecimal() or len(number) > 9 or int(number) >= count:
            hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
            shown = "on this machine" if hidden is None else f"with CUDA_VISIBLE_DEVICES={hidden!r}"
            raise DeviceError(
                f"device={device!r} is not available: PyTorch {torch.__version__} sees {count} CUDA GPUs {shown}; "
                "use device='cpu', or install a PyTorch built for your GPU"
            )
    from psmt.engines.torch.engine import TorchEngine

    return check_engine(TorchEngine(engine_name(device, dtype), torch.device(name), getattr(torch, dtype)))
