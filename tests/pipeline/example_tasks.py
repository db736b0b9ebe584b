"""Functions for tasks, in a module that workers can import too."""

import os
import signal
import time
from pathlib import Path

import numba
import numpy as np
from threadpoolctl import threadpool_info


def scaled(*, x, factor):
    return {"y": factor * x, "sum": np.array(x.sum())}


def counted(*, x, log):
    """2 x, with a line in `log` for each time that it is computed."""
    with open(log, "a") as file:
        file.write("computed\n")
    return {"y": 2 * x}


def careless(*, x):
    x += 1
    return {"y": x.T}


def failing(*, x):
    raise ArithmeticError(f"no {x}")


def mortal(*, x, marker):
    """2 x, but the first process that computes it dies of it; without a marker every one does."""
    time.sleep(0.05)
    if marker is None or not Path(marker).exists():
        if marker is not None:
            Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"y": 2 * x}


def threads():
    """Threads that BLAS and numba have."""
    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {"blas": np.array(max(blas)), "numba": np.array(numba.get_num_threads())}


def environment(*, name):
    return {"value": np.array(os.environ.get(name, ""))}


def objects():
    return {"y": np.array([{}])}


def sleepy(*, seconds, marks=None):
    """Sleep, and say in a folder which process does so."""
    if marks is not None:
        (Path(marks) / f"{os.getpid()}.pid").touch()
    time.sleep(seconds)
    return {"y": np.array(seconds)}


def stored_mean(*, x):
    """Mean row, whether the series is stored or not."""
    return {"mean": np.asarray(x).mean(axis=0)}
