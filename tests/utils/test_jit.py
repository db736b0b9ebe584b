"""Compiled code that cannot be kept: everything works, and it is said once."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

import psmt
from psmt.errors import CacheWarning
from psmt.utils import jit as compiled

PACKAGE = Path(psmt.__file__).parent


@pytest.fixture
def fresh(monkeypatch):
    compiled._warn_once.cache_clear()
    yield
    compiled._warn_once.cache_clear()


def twice(x):
    return 2 * x


def made():
    return compiled.njit(cache=True, nogil=True)(twice)


def test_nowhere_to_write_is_said_once(fresh, monkeypatch):
    monkeypatch.setattr("numba.core.caching.tempfile.TemporaryFile", _refuse)
    with pytest.warns(CacheWarning, match="NUMBA_CACHE_DIR") as told:
        assert [made()(3.0), made()(4.0)] == [6.0, 8.0]
    assert len(told) == 1


def _refuse(*_, **__):
    raise PermissionError(13, "Permission denied")


def test_a_full_disk_is_said_once(fresh, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(IndexDataCacheFile, "save", _refuse)
    with pytest.warns(CacheWarning):
        assert made()(3.0) == 6.0


def test_it_is_kept_where_it_can_be_and_damage_is_compiled_anew(fresh, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made()(3.0) == 6.0
        kept = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {path.suffix for path in kept} == {".nbi", ".nbc"}
        again = made()
        assert again(3.0) == 6.0
        assert sum(again.stats.cache_hits.values()) == 1
        for path in kept:
            path.write_bytes(b"\x80\x05damaged")
        assert made()(3.0) == 6.0
        assert made()(np.int64(3)) == 6


def test_all_kernels_are_compiled_that_way():
    direct = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if path.name != "compiled.py"
        and any(line.startswith("from numba import") and "njit" in line for line in path.read_text().splitlines())
    ]
    assert direct == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="there are no users")
def test_a_read_only_installation_without_a_home(tmp_path):
    """A copy of the package that may only be read, run by nobody."""
    home = tmp_path / "site"
    shutil.copytree(PACKAGE, home / "psmt", ignore=shutil.ignore_patterns("__pycache__"))
    work = tmp_path / "work"
    work.mkdir(mode=0o777)
    work.chmod(0o777)
    for path in [home, *home.rglob("*"), *tmp_path.parents]:
        if path.is_relative_to(tmp_path):
            path.chmod(path.stat().st_mode & ~0o222)
    as_nobody = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
    if as_nobody and not _reachable(tmp_path):
        pytest.skip("nobody may not enter the folder of the tests")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(home),
        "HOME": "/nonexistent",
        "MPLCONFIGDIR": str(work),
    }
    code = "import sys; from psmt.cli import main; sys.exit(main())"
    film = "builtin:glide?frames=120&size=24"
    command = [sys.executable, "-c", code, "reconstruct", film, "--size", "24", "--patch", "6", "--atoms", "8"]
    done = subprocess.run(
        [*command, "--workers", "2", "--out", str(work / "out")],
        env=environment,
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
        **as_nobody,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled code cannot be cached") == 1
    assert (work / "out" / "reconstruction.csv").exists()


def _reachable(folder):
    done = subprocess.run(["ls", str(folder)], user="nobody", group="nogroup", capture_output=True, check=False)
    return done.returncode == 0
