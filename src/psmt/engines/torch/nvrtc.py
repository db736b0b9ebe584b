"""CUDA kernels of our own, compiled at first use for the GPU that is there.

NVRTC, the compiler, comes with every CUDA build of PyTorch: no toolkit is asked for. What is called here is the C
interface of NVRTC and of the driver, through ctypes.
"""

from __future__ import annotations

import ctypes
import warnings
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_OWN_SHARED, _SHARED = 1, 8
"""The driver's names for how much shared memory a block has by declaration, and how much more it may ask for."""

_TYPES = {torch.float64: "double", torch.float32: "float"}


class Kernel:
    """A function of a CUDA source file of this package, for one device."""

    def __init__(self, driver: Any, image: bytes, name: str, device: torch.device) -> None:
        self._driver, self._device = driver, device
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        properties = torch.cuda.get_device_properties(device)
        self.processors: int = properties.multi_processor_count
        with torch.cuda.device(device):
            torch.cuda.current_stream(device).synchronize()  # there is a context now
            self._check(driver.cuModuleLoadData(ctypes.byref(self._module), image))
            self._check(driver.cuModuleGetFunction(ctypes.byref(self._function), self._module, name.encode()))
            own = ctypes.c_int()
            self._check(driver.cuFuncGetAttribute(ctypes.byref(own), _OWN_SHARED, self._function))
            self.shared_bytes: int = properties.shared_memory_per_block_optin - own.value
            self._check(driver.cuFuncSetAttribute(self._function, _SHARED, self.shared_bytes))

    def blocks_at_once(self, threads: int, shared: int) -> int:
        """How many blocks the device runs side by side."""
        count = ctypes.c_int()
        with torch.cuda.device(self._device):
            self._check(
                self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    ctypes.byref(count), self._function, ctypes.c_int(threads), ctypes.c_size_t(shared)
                )
            )
        return max(count.value, 1) * self.processors

    def __call__(self, blocks: int, threads: int, shared: int, *arguments: Tensor | int | float) -> None:
        """Launch it in the current stream, with `shared` bytes of shared memory for each block."""
        given: list[Any] = []
        for argument in arguments:
            if isinstance(argument, Tensor):
                given.append(ctypes.c_void_p(argument.data_ptr()))
            else:
                given.append(ctypes.c_int(argument) if isinstance(argument, int) else ctypes.c_double(argument))
        pointers = (ctypes.c_void_p * len(given))(*(ctypes.addressof(value) for value in given))
        with torch.cuda.device(self._device):
            stream = ctypes.c_void_p(torch.cuda.current_stream(self._device).cuda_stream)
            self._check(
                self._driver.cuLaunchKernel(self._function, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, None)
            )

    def _check(self, result: int) -> None:
        if result:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"CUDA error {result}: {(text.value or b'unknown').decode()}")


@lru_cache
def kernel(file: str, name: str, dtype: torch.dtype, device: torch.device, threads: int) -> Kernel | None:
    """The function of a source file with REAL for the type and THREADS per block at the most; None without NVRTC."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    try:
        compiler, driver = _compiler(), ctypes.CDLL("nvcuda.dll" if _is_windows() else "libcuda.so.1")
    except OSError as error:
        warnings.warn(f"kernels cannot be compiled, and slower torch code stands in for them: {error}", stacklevel=2)
        return None
    major, minor = torch.cuda.get_device_capability(device)
    options = [
        f"--gpu-architecture=sm_{major}{minor}",
        "--std=c++17",
        f"-DREAL={_TYPES[dtype]}",
        f"-DTHREADS={threads}",
    ]
    return Kernel(driver, _compile(compiler, file, options), name, device)


def _is_windows() -> bool:
    return hasattr(ctypes, "windll")


def _compiler() -> Any:
    major = str(torch.version.cuda).split(".")[0]
    if _is_windows():
        return ctypes.CDLL(f"nvrtc64_{major}0_0.dll")
    try:
        return ctypes.CDLL(f"libnvrtc.so.{major}")
    except OSError:
        # It lies in a folder that only torch's own libraries know; one of them needs it and brings it along.
        ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(f"libnvrtc.so.{major}")


def _compile(compiler: Any, file: str, options: list[str]) -> bytes:
    """Machine code of a source file."""
    source = files("psmt.engines.torch").joinpath(file).read_bytes()
    program = ctypes.c_void_p()
    if compiler.nvrtcCreateProgram(ctypes.byref(program), source, file.encode(), 0, None, None):
        raise RuntimeError("NVRTC could not be started")
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = compiler.nvrtcCompileProgram(program, len(options), given)
    read = ("ProgramLog", "CUBIN")[failed == 0]
    size = ctypes.c_size_t()
    getattr(compiler, f"nvrtcGet{read}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(compiler, f"nvrtcGet{read}")(program, text)
    compiler.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise RuntimeError(f"{file} does not compile:\n{text.value.decode()}")
    return text.raw
