"""A rule: files are opened for reading by `psmt.utils.files.reading`, and by nothing else in the package."""

import ast
from pathlib import Path

import pytest

import psmt

PACKAGE = Path(psmt.__file__).parent

OPENERS = {"open", "open_code", "fdopen", "read_text", "read_bytes", "load", "loadtxt", "fromfile"}
"""Names of functions that open files, of whatever module or object: np.load, Path.open, Image.open .."""
DECODERS = {
    "genfromtxt",
    "ZipFile",
    "GzipFile",
    "_BoundedGzip",
    "memmap",
    "loadmat",
    "whosmat",
    "from_filename",
    "read_csv",
    "FileIO",
    "NpzFile",
}
"""Names of functions that take a file or a name; they must be given a file."""

ALLOWED = {
    "utils/files.py: open(path)": "`reading` itself, and the lock of a folder",
    "utils/files.py: open(temporary)": "`writing`",
    "utils/files.py: os.open(path)": "the opener of both",
    "utils/disk_series.py: open(path)": "writes a file of its own",
    "utils/disk_series.py: open(self.filename)": "reads it",
    "utils/disk_series.py: cls.open(path)": "maps it",
    "experiments/predict_video/recording.py: open(self._path)": "appends to a file of its own",
    "cli/process.py: os.open(os.devnull)": "no file",
    "pipeline/cache.py: path.read_text()": "source of the package",
    "pipeline/cache.py: Path(file).read_text()": "source of a task",
    "experiments/options/parameters.py: file.read_text('utf-8')": "source of the package",
    "engines/torch/cuda.py: files('psmt.engines.torch').joinpath(file).read_bytes()": "a file of the package",
    "live/serving.py: file.read_bytes()": "a file of the package",
    "experiments/brain/exports.py: Path(__file__).with_name('columns.toml').read_text()": "a file of the package",
    "data/readers/video.py: av.open(medium.address)": "cameras and streams",
    "experiments/predict_video/recording.py: np.loadtxt(block)": "lines of text",
    "datasets.py: load(film)": "a built-in film",
    "datasets.py: load(scan)": "a simulated scan",
    "data/readers/scans.py: np.genfromtxt(found['framewise_displacement'].astype(str))": "strings of a column",
}
"""Calls that open no file that a user names, each with what it opens."""

TYPES = {"Archive", "GroupModel", "options", "self._file", "archive", "PSMT", "FramePredictor", "Prior"}
"""Objects whose `open` or `load` is a function of psmt that ends in `reading`, or opens a member of an archive."""

FILES = {"file", "content", "drawn", "BytesIO", "part"}
"""Names of opened files: arguments of decoders."""


def calls(path):
    """Yield each call that may open a file: its name, its object and its first argument, as text, and its node."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name not in OPENERS | DECODERS:
                continue
            owner = "" if isinstance(node.func, ast.Name) else ast.unparse(node.func.value)
            first = ast.unparse(node.args[0]) if node.args else ""
            if name in ("GzipFile", "_BoundedGzip"):
                first = next(
                    (ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg == "fileobj"), first
                )
            yield name, owner, first, node


def breaches(package):
    """Calls that open files in another way, as 'file: call(first argument)'."""
    for path in sorted(package.rglob("*.py")):
        for name, owner, first, node in calls(path):
            called = f"{owner}.{name}" if owner else name
            told = f"{path.relative_to(package).as_posix()}: {called}({first})"
            if told in ALLOWED:
                continue
            from_file = first.partition("(")[0] in FILES
            if called in ("Image.open", "av.open"):
                # Pillow's formats are on a list, but for pictures that psmt has drawn itself.
                drawn = first.startswith("BytesIO") or first == "drawn"
                listed = drawn or called == "av.open" or any(keyword.arg == "formats" for keyword in node.keywords)
                if not (from_file and listed):
                    yield told
            elif owner not in TYPES if name in OPENERS else not from_file:
                yield told


@pytest.mark.slow
def test_files_are_opened_by_one_function():
    assert not list(breaches(PACKAGE))


def test_the_rule_finds_what_it_forbids(tmp_path):
    lines = [
        "open(path)",
        "path.open('rb')",
        "path.read_bytes()",
        "np.load(path)",
        "nibabel.load(path)",
        "Image.open(path)",
        "Image.open(file)",
        "av.open(path)",
        "zipfile.ZipFile(path)",
        "np.genfromtxt(path)",
    ]
    (tmp_path / "new.py").write_text("\n".join(lines))
    assert len(list(breaches(tmp_path))) == len(lines)
