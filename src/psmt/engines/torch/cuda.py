"""CUDA graphs, and CUDA kernels of this package that are compiled at first use.

A CUDA graph records work made of many small operations and launches it as one. The kernels are compiled by NVRTC, which
comes with every CUDA build of PyTorch, so no toolkit is needed. NVRTC and the driver are called through ctypes.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Hashable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from psmt.engines.contract import Resident

_KEPT = 16  # number of captures that are kept, one for each shape; each occupies the memory that its work needs
_CAPTURING = Lock()  # one capture at a time
_OWN_SHARED, _SHARED = 1, 8  # driver attributes: shared memory that a kernel declares, and that a launch may add
_TYPES = {torch.float64: "double", torch.float32: "float"}

A = TypeVar("A")


class _Capture(NamedTuple):
    graph: torch.cuda.CUDAGraph | None  # None if torch cannot capture the work, which is then called directly
    copied: list[Tensor]
    resident: list[Tensor]
    found: Any  # the result of the work, in tensors of the graph


class Captured:
    """Function that runs given work as one GPU launch (a CUDA graph), and calls the work directly on other devices.

    The positional arguments of the work are tensors, `Resident` objects, constants, or tuples of these. Keyword
    arguments are constants, too. The work returns a tensor or a tuple of tensors. It must not read a result on the
    host, and it may change only resident arrays in place.
    """

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self._kept: dict[tuple[object, ...], _Capture] = {}
        self._busy = Lock()

    def __reduce__(self) -> tuple[type[Captured], tuple[Callable[..., Any]]]:
        # A graph can be neither copied nor pickled.
        return Captured, (self._work,)

    def __call__(self, *arguments: Any, **settings: Hashable) -> Any:
        """Return the result of the work for these arguments. Tensors are copied to the graph, except resident ones."""
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
            self._kept[key] = capture  # the latest comes last
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
        self, arguments: tuple[Any, ...], copied: list[Tensor], resident: list[Tensor], settings: dict[str, Hashable]
    ) -> _Capture:
        own = [torch.empty_like(tensor, memory_format=torch.contiguous_format).copy_(tensor) for tensor in copied]
        graph, aside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with _CAPTURING, torch.cuda.stream(aside):
            # The first run loads kernels and sets up libraries, which must not be captured. It works on copies.
            self._work(*_rebuilt(arguments, own, [tensor.clone() for tensor in resident]), **settings)
            torch.cuda.synchronize()
            try:
                graph.capture_begin(capture_error_mode="thread_local")  # other threads may work on
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
    """Return the tensors to copy, the resident tensors, and the constants among the arguments, in order."""
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
    """Return the arguments with their tensors replaced by others, which are given in the order of `_parts`."""
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


class Kernel:
    """Compiled CUDA kernel of this package, loaded on one device."""

    def __init__(self, driver: Any, image: bytes, name: str, device: torch.device) -> None:
        self._driver, self._device = driver, device
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        properties = torch.cuda.get_device_properties(device)
        self.processors: int = properties.multi_processor_count
        with torch.cuda.device(device):
            torch.cuda.current_stream(device).synchronize()  # this creates the context
            self._check(driver.cuModuleLoadData(ctypes.byref(self._module), image))
            self._check(driver.cuModuleGetFunction(ctypes.byref(self._function), self._module, name.encode()))
            own = ctypes.c_int()
            self._check(driver.cuFuncGetAttribute(ctypes.byref(own), _OWN_SHARED, self._function))
            self.shared_bytes: int = properties.shared_memory_per_block_optin - own.value
            self._check(driver.cuFuncSetAttribute(self._function, _SHARED, self.shared_bytes))

    def blocks_at_once(self, threads: int, shared: int) -> int:
        """Return how many blocks, each with `shared` bytes of shared memory, the device can run at the same time."""
        count = ctypes.c_int()
        with torch.cuda.device(self._device):
            self._check(
                self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    ctypes.byref(count), self._function, ctypes.c_int(threads), ctypes.c_size_t(shared)
                )
            )
        return max(count.value, 1) * self.processors

    def __call__(self, blocks: int, threads: int, shared: int, *arguments: Tensor | int | float) -> None:
        """Launch the kernel in the current stream. Each block has `shared` bytes of shared memory."""
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
    """Return a kernel of a CUDA source file, compiled for a dtype and block size, or None if this is impossible."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    try:
        compiler, driver = _compiler(), ctypes.CDLL("nvcuda.dll" if _is_windows() else "libcuda.so.1")
    except OSError as error:
        warnings.warn(f"kernels cannot be compiled, so slower torch code is used: {error}", stacklevel=2)
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
        # NVRTC lies in a folder that only torch's own libraries know. Loading one of these libraries makes it
        # available.
        ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(f"libnvrtc.so.{major}")


def _compile(compiler: Any, file: str, options: list[str]) -> bytes:
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
