"""A rule: files are opened for reading by `psmt.utils.files.reading`, and by nothing else in the package."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import psmt
from psmt.data.readers.film_writer import writing_film

PACKAGE = Path(psmt.__file__).parent

METHODS = re.compile(
    r"open(_code|_memmap)?|fdopen|read_(text|bytes|csv|table|excel|parquet|hdf|json|pickle)|imread|load(txt|mat)?"
    r"|fromfile|genfromtxt|memmap|whosmat|from_filename|ZipFile|GzipFile|FileIO"
)
"""Names of methods that open files, of whatever object: path.open, path.read_bytes .."""

READERS = re.compile(
    r"(open|load|(im|mm)?read|scan|fetch)(_\w+)?|(\w*mem|m)map|\w*(File|Path|Capture|Dataset|DataSource)|FileIO"
    r"|copy(file|fileobj|tree|2)|loadtxt|fromfile|genfromtxt|loadmat|whosmat|from_filename|(url|p|fd)open|system"
)
"""Names of functions of other packages that take a file or its name. They must be given an opened file."""

PACKAGES = re.compile(
    r"(PIL|array_api_compat|av|cyclopts|dask|distributed|hmmlearn|jinja2|joblib|matplotlib|nibabel|nilearn|numba|numpy"
    r"|pandas|polars|psmt|rich|river|scipy|sklearn|sktime|starlette|threadpoolctl|torch|uvicorn|websockets)(\..*)?"
)
"""Packages that psmt imports. Before you add one, see that `READERS` has the names by which it opens files."""

NOT_IMPORTED = re.compile(
    r"(asyncio\.subprocess|bz2|codecs|configparser|dbm|fileinput|linecache|lzma|mailbox|marshal|netrc|pickle|runpy"
    r"|shelve|sqlite3|subprocess|tarfile|tokenize|urllib\.request|wave|zipimport)(\..*)?"
)
"""Modules of Python that open files or start programs by functions of any name."""

ALLOWED = {
    "utils/files.py: open(path)": "`reading` itself, and the lock of a folder",
    "utils/files.py: open(temporary)": "`writing`",
    "utils/files.py: os.open(path)": "the opener of both",
    "utils/disk_series.py: open(path)": "writes a file of its own",
    "utils/disk_series.py: open(self.filename)": "reads it",
    "utils/disk_series.py: cls.open(path)": "maps it",
    "utils/disk_series.py: isinstance(mmap.mmap)": "no call",
    "evaluation/null_models.py: TemporaryFile()": "a file of its own",
    "experiments/predict_video/recording.py: open(self._path)": "appends to a file of its own",
    "cli/process.py: os.open(os.devnull)": "no file",
    "pipeline/cache.py: path.read_text()": "source of the package",
    "pipeline/cache.py: Path(file).read_text()": "source of a task",
    "experiments/options/parameters.py: file.read_text('utf-8')": "source of the package",
    "engines/torch/cuda.py: files('psmt.engines.torch').joinpath(file).read_bytes()": "a file of the package",
    "live/serving.py: file.read_bytes()": "a file of the package",
    "live/serving.py: threading.Thread(webbrowser.open)": "an address of our own",
    "experiments/brain/exports.py: Path(__file__).with_name('columns.toml').read_text()": "a file of the package",
    "data/readers/video.py: av.open(medium.address)": "cameras and streams",
    "data/readers/scans.py: load_confounds_strategy(str(path))": "tables that were checked",
    "data/readers/scans.py: np.genfromtxt(found['framewise_displacement'].astype(str))": "strings of a column",
    "experiments/predict_video/recording.py: np.loadtxt(block)": "lines of text",
}
"""Calls that open no file that a user names, each with what it opens."""

TYPES = {"Archive", "GroupModel", "options", "self._file", "archive", "PSMT", "FramePredictor", "Prior"}
"""Objects whose `open` or `load` is a function of psmt that ends in `reading`, or opens a member of an archive."""

NEVER = {"io.open", "numpy.load", "torch.load", "joblib.load"}
"""Functions that no file may be given, because they could unpickle it."""

FILES = {"file", "content", "drawn", "BytesIO", "part", "member"}
"""Names of opened files: arguments of decoders."""


def imports(tree):
    """Yield each import of a file: the name that it has there, what that stands for, and the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                root = one.name.partition(".")[0]
                yield one.asname or root, one.name if one.asname else root, one.name
        elif isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}", node.module) for one in node.names)


def named(node, origins):
    """What an expression such as `np.lib.format` stands for, or '' for an object. `origins` are a file's imports."""
    root, *parts = ast.unparse(node).split(".")
    return ".".join([origins[root], *parts]) if root in origins else ""


def opens(node, origins):
    """Whether an expression is a function that opens files."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    full = named(node, origins)
    if full:
        module, _, name = full.rpartition(".")
        own = full.startswith(("psmt.", "pathlib.Path"))
        return bool(module and READERS.fullmatch(name)) and not own
    found = isinstance(node, ast.Attribute) and METHODS.fullmatch(node.attr)
    return bool(found) and ast.unparse(node.value) not in TYPES


def breach(call, origins):
    """Return a call that opens a file as 'call(first argument)', or None."""
    full, own = named(call.func, origins), ast.unparse(call.func)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    for value in values:  # map(open, names), partial(np.load, name)
        if opens(value, origins):
            return f"{own}({ast.unparse(value)})"
    if full == "builtins.getattr" and any(METHODS.fullmatch(str(getattr(value, "value", ""))) for value in values):
        return f"{own}({', '.join(map(ast.unparse, values))})"
    if not opens(call.func, origins):
        return None
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "fileobj"), (call.args or [None])[0])
    first = ast.unparse(given) if given else ""
    listed = {"PIL.Image.open": "formats", "av.open": "options"}.get(full)  # the decoder knows the formats from a list
    if listed and not any(keyword.arg in (listed, "mode") for keyword in call.keywords):
        decodes_only = first == "drawn" or first.startswith(("BytesIO(self.png", "BytesIO(png", "content"))
    else:
        decodes_only = first.partition("(")[0] in FILES
    return None if full and decodes_only and full not in NEVER else f"{own}({first})"


def breaches(package):
    """Uses of other ways to open files, as 'file: call(first argument)'."""
    for path in sorted(package.rglob("*.py")):
        tree, file = ast.parse(path.read_text()), path.relative_to(package).as_posix()
        origins = {name: full for name, full, _ in imports(tree)} | {"open": "io.open", "getattr": "builtins.getattr"}
        for _, full, module in imports(tree):
            known = PACKAGES.fullmatch(module) or module.partition(".")[0] in sys.stdlib_module_names
            if not known or any(map(NOT_IMPORTED.fullmatch, (module, full))):
                yield f"{file}: import {full}"
        for node in ast.walk(tree):
            found = breach(node, origins) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and opens(node.value, origins):
                found = ast.unparse(node.value)
            if found and f"{file}: {found}" not in ALLOWED:
                yield f"{file}: {found}"


@pytest.mark.slow
def test_files_are_opened_by_one_function():
    assert not list(breaches(PACKAGE))


def test_recipes_keep_the_rule(tmp_path):
    text = Path(__file__).parents[1].joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
    for index, block in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
        (tmp_path / f"recipe_{index}.py").write_text(block)
    assert not list(breaches(tmp_path))


MODULES = """
import asyncio, functools, gzip, io, os, shutil, zipfile
import av, matplotlib.pyplot as plt, nibabel, nilearn.image, numpy as np, pandas, pandas as pd, polars as pl, PIL, torch
from pathlib import Path
from nibabel import Nifti1Image
from nilearn.interfaces.fmriprep import load_confounds
from numpy import load as fetched
from PIL import Image
from scipy.io import loadmat, mmread, wavfile
"""

FORBIDDEN = """
open(path)
open(path, "rb").read()
io.open(path)
io.open_code(path)
io.FileIO(path)
os.open(path, os.O_RDONLY)
os.fdopen(number)
os.popen(path)
path.open("rb")
Path(path).open()
path.read_text()
path.read_bytes()
gzip.open(path)
gzip.GzipFile(path)
zipfile.ZipFile(path)
zipfile.Path(path)
shutil.copyfile(path, other)
np.load(path)
np.load(file, path)
np.loadtxt(path)
np.fromfile(path)
np.genfromtxt(path)
np.memmap(path)
np.lib.format.open_memmap(path)
np.DataSource().open(path)
fetched(path)
loadmat(path)
wavfile.read(path)
mmread(path)
PIL.Image.open(path)
Image.open(path)
Image.open(file)
Image.open(io.BytesIO(file.read()))
av.open(path)
av.open(file)
plt.imread(path)
pandas.read_csv(path)
pd.read_table(path)
pd.read_parquet(path)
pd.read_pickle(path)
pl.scan_csv(path)
torch.load(path)
nibabel.load(path)
Nifti1Image.from_filename(path)
nilearn.image.load_img(path)
load_confounds(path)
of_another_kind.read_csv(path)
functools.partial(open, path)
map(np.load, paths)
opener = open
opener = np.load
getattr(np, "load")(path)
import tifffile
import imageio.v3
import cv2
import h5py
import netCDF4
import bz2
import tarfile
import subprocess
import urllib.request
from urllib import request
from asyncio import subprocess
"""


def test_the_rule_finds_what_it_forbids(tmp_path):
    (tmp_path / "imports.py").write_text(MODULES)
    assert not list(breaches(tmp_path))
    for line in FORBIDDEN.split("\n")[1:-1]:
        (tmp_path / "imports.py").write_text(f"{MODULES}\n{line}\n")
        assert list(breaches(tmp_path)), line


WATCHED = """
import os, sys
from pathlib import Path

folder, opened = sys.argv[1], []


def seen(event, given):
    if event == "open" and isinstance(given[0], str | bytes) and os.fsdecode(given[0]).startswith(folder):
        frame = sys._getframe(1)
        while frame and frame.f_code.co_name != "reading":
            frame = frame.f_back
        opened.append((os.fsdecode(given[0]), frame is not None))


import psmt
from psmt.data import FrameSource, open_source
from psmt.data.readers.scans import Parcels, read_scan

sys.addaudithook(seen)
for path in sorted(Path(folder).iterdir()):
    opened.clear()
    if path.name == "model":
        psmt.PSMT.load(path)
    elif path.name.startswith("scan"):
        read_scan(path, Parcels(mask=Path(folder, "mask.nii"), confounds=str(Path(folder, "confounds.tsv"))))
    elif path.suffix != ".nii":
        source = open_source(path)
        source.checksum()
        list(source) if isinstance(source, FrameSource) else source.values
    else:
        continue
    assert opened, f"nobody saw who opens {path.name}"
    assert all(by_reading for _, by_reading in opened), opened
    print(path.name)
"""


def watched(folder):
    """Read each source in a folder, in a process that notes which files Python opens, and how. Return the names."""
    done = subprocess.run([sys.executable, "-c", WATCHED, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_every_kind_of_source_is_opened_by_one_function(tmp_path):
    """Files that Python opens, whatever the function is called. What libraries in C open is left to the rule."""
    frames = np.random.default_rng(0).integers(0, 255, (60, 16, 16), dtype=np.uint8)
    series = frames[:, 0].astype(float)
    (tmp_path / "images").mkdir()
    for index, frame in enumerate(frames[:4]):
        Image.fromarray(frame).save(tmp_path / "images" / f"{index}.png")
    pictures = [Image.fromarray(frame) for frame in frames[:4]]
    pictures[0].save(tmp_path / "a.tif", save_all=True, append_images=pictures[1:])
    np.savetxt(tmp_path / "a.csv", series, delimiter=",")
    np.savetxt(tmp_path / "a.tsv", series, delimiter="\t")
    np.save(tmp_path / "a.npy", series)
    np.savez(tmp_path / "a.npz", frames=frames)
    savemat(tmp_path / "a.mat", {"series": series})
    psmt.PSMT(n_atoms=8, window=30, n_components=2, alpha="auto", lam=0.1).fit(series).save(tmp_path / "model")
    with writing_film(tmp_path / "a.mp4") as add:
        for frame in frames:
            add(np.dstack([frame] * 3))
    assert len(watched(tmp_path)) == 9


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_a_scan_is_opened_by_one_function(tmp_path, suffix):
    nibabel = pytest.importorskip("nibabel")
    pytest.importorskip("nilearn")
    values = np.random.default_rng(0).standard_normal((4, 4, 4, 30)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / f"scan{suffix}")
    nibabel.save(nibabel.Nifti1Image(np.ones((4, 4, 4), np.uint8), np.eye(4)), tmp_path / "mask.nii")
    np.savetxt(tmp_path / "confounds.tsv", values[0, 0, :2].T, header="a\tb", comments="", delimiter="\t")
    assert watched(tmp_path) == ["confounds.tsv", f"scan{suffix}"]
