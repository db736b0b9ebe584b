"""Engines: the few operations that cost time, once per kind of hardware.

An engine codes, learns, keeps moments, embeds and recovers. What its operations take and give are arrays of its own:
they stay on its device, so that a model moves one frame in and one frame out. The rest of the package does arithmetic
on these arrays by operators and methods that all kinds share, and does not know which kind it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from psmt.errors import DeviceError

__all__ = ["Engine", "engine_for", "engine_name"]


class Engine(Protocol):
    """What the package asks of an engine; `Any` stands for its own arrays."""

    device: str

    def array(self, values: ArrayLike) -> Any:
        """Own array of float64 with these values."""

    def numpy(self, values: Any) -> NDArray[np.float64]:
        """A NumPy array with the values of an own one."""

    def dense(self, values: csr_array) -> Any:
        """Own array of float64 with the values of a sparse one; only what is not zero goes to the device."""

    def stack(self, arrays: Sequence[Any]) -> Any:
        """Own arrays of one shape, as rows of one."""

    def atoms(self, given: NDArray[np.float64]) -> Any:
        """A dictionary (n_atoms, n_features), ready for coding: an `Atoms`."""

    def statistics(self, n_atoms: int, n_features: int) -> Any:
        """What a dictionary is learned from: a `DictionaryStatistics`."""

    def code(self, atoms: Any, samples: Any, alpha: float, *, tol: float) -> Any:
        """Codes (n, n_atoms) of samples (n, n_features) over unit-norm atoms (n_atoms, n_features)."""

    def moments(self, codes: Any) -> Any:
        """Moments of a window of codes (time, n_features): a `WindowMoments`."""

    def moments_from_state(self, state: dict[str, NDArray[np.float64]]) -> Any:
        """The moments whose `state` this was."""

    def straightest(self, moments: Any, n_components: int | None, *, centred: bool, ends: bool, rank_tol: float) -> Any:
        """The closed form of a window's embedding: an `Embedding`."""

    def tracked(self, n_components: int | None, *, centred: bool, ends: bool, rank_tol: float) -> Any:
        """The embedding of a sliding window: a `TrackedEmbedding`."""

    def embedding(self, matrix: NDArray[np.float64], roughness: NDArray[np.float64], rank: int) -> Any:
        """An `Embedding` of given parts."""

    def recovery(self, embedding: Any, lam: float | Sequence[float], *, activity: Any = np.inf) -> Any:
        """Codes from points of an embedding (n_components, n_features): a `Recovery`."""

    def recover_next(self, recover: Any, extrapolation: Any, previous: Any, current: Any) -> Any:
        """The code (n_features,) that follows two others: steps 6 and 7. Of several lam, each gives a row."""


def engine_name(device: str, dtype: str = "float64") -> str:
    """A device and a dtype in one, such as 'cuda/float32', for what is told the device only; 'cuda' is in float64."""
    return device if dtype == "float64" else f"{device}/{dtype}"


@lru_cache
def engine_for(device: str, dtype: str = "float64") -> Engine:
    """The engine of a device: 'cpu' (NumPy and compiled kernels), 'cuda', 'cuda:1', .. (torch on a GPU).

    'torch:cpu' is the torch engine without a GPU: slow, but good to test it with. With the dtype 'float32', which torch
    devices know, codes are sought and recovered in single precision; moments and embeddings stay in double precision.
    An `engine_name` is a device too.

    Raises
    ------
    DeviceError
        When the device or its dtype is unknown, torch is not installed, or there is no such GPU.

    Examples
    --------
    >>> engine_for("cpu").device
    'cpu'
    """
    device, _, given = device.partition("/")
    dtype = given or dtype
    if dtype not in ("float64", "float32"):
        raise DeviceError(f"dtype={dtype!r} is not known; use 'float64', or 'float32' on a GPU")
    if device == "cpu":
        if dtype != "float64":
            raise DeviceError(f"dtype={dtype!r} is for GPUs; device='cpu' computes in 'float64'")
        from psmt.engines.numba.engine import CpuEngine

        return CpuEngine()
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
        if not number.isdecimal() or int(number) >= count:
            raise DeviceError(
                f"device={device!r} is not there: PyTorch {torch.__version__} sees {count} CUDA GPUs on this machine; "
                "use device='cpu', or install a PyTorch built for your GPU"
            )
    from psmt.engines.torch.engine import TorchEngine

    return TorchEngine(engine_name(device, dtype), torch.device(name), getattr(torch, dtype))
