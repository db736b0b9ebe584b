"""What all tests and doctests share. Those of optional libraries are collected only where these are installed.

Fixtures import what they need: the process that hands out the tests to the workers needs none of it.
"""

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

import pytest

_OPTIONAL = {
    "torch": "src/psmt/engines/torch/*",
    "sktime": "src/psmt/adapters/sktime.py",
    "river": "src/psmt/adapters/river.py",
}
collect_ignore_glob = [files for library, files in _OPTIONAL.items() if not find_spec(library)]

_LARGE = ("sklearn.utils.estimator_checks", "scipy.stats", "numba", "nibabel", "cyclopts", "uvicorn")
_LARGE += ("matplotlib.pyplot", "pandas", "hypothesis", "distributed")


def pytest_configure(config):
    """Import large libraries, each of two workers from its own end: after an install, each compiles its half."""
    worker = getattr(config, "workerinput", {}).get("workerid")
    for name in {"gw0": _LARGE, "gw1": _LARGE[::-1]}.get(worker, ()):
        with suppress(ImportError):
            import_module(name)


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Matrices are small here: more threads would only wait for each other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_disk():
    """Files are not forced to the disk, which takes milliseconds each: no test outlives a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def small_figures():
    """Files of figures are a quarter as wide as people get them: most of the time of a tiny run would be ink."""
    from psmt.figures import png

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(png.__kwdefaults__, "dpi", 40)
        yield
