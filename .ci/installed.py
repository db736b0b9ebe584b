"""What a fresh install does with nothing but its own dependencies; `.ci/wheel` runs this in an empty folder."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np

import psmt

OF_EXTRAS = {"torch", "starlette", "uvicorn", "websockets", "distributed", "dask", "nilearn", "nibabel", "pandas"}
OF_EXTRAS |= {"hmmlearn", "sktime", "river"}
"""What only an extra installs. A module may ask for it when it is imported; for anything else it may not."""

TINY = [
    "--atoms",
    "16",
    "--components",
    "4",
    "--lam",
    "0.1",
    "--alpha",
    "0.1",
    "--horizon",
    "4",
    "--starts",
    "3",
    "--workers",
    "1",
]


def command(*arguments: str) -> str:
    """What the command `psmt` prints; an error where it fails."""
    run = subprocess.run([Path(sys.executable).with_name("psmt"), *arguments], capture_output=True, text=True)
    assert run.returncode == 0, f"psmt {' '.join(arguments)} ended with {run.returncode}: {run.stderr}"
    return run.stdout.strip()


def left_out() -> int:
    """How many modules need an extra. All others are imported, so that no dependency is missing in pyproject.toml."""
    count = 0
    for module in pkgutil.walk_packages(psmt.__path__, "psmt.", onerror=lambda _: None):
        if module.name == "psmt.__main__":
            continue
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name and error.name.split(".")[0] in OF_EXTRAS, f"{module.name} needs {error.name}"
            count += 1
    return count


def waves() -> np.ndarray:
    """A series (150, 31) that moves smoothly."""
    time, place = np.mgrid[:150, :31]
    return np.sin(0.1 * time + 0.3 * place) + np.sin(0.07 * time - 0.2 * place)


def main() -> None:
    """Version, names, modules, a prediction, a report."""
    assert "site-packages" in psmt.__file__, f"psmt is not the installed one: {psmt.__file__}"
    assert command("--version") == psmt.__version__ == version("psmt")
    for name in psmt.__all__:
        getattr(psmt, name)
    extras = left_out()

    series = waves()
    model = psmt.PSMT(n_atoms=16, window=60, n_components=4, lam=0.1, alpha=0.1, random_state=0).fit(series[:100])
    model.update(series[100])
    predicted = model.predict()
    assert predicted.shape == (31,) and np.isfinite(predicted).all()
    error = np.mean((predicted - series[101]) ** 2) / series.var()
    assert error < 0.5, f"a smooth wave is predicted with an error of {error:.2f} of its variance"

    np.save("series.npy", series)
    command("reproduce", "series.npy", *TINY, "--out", "out")
    assert "</html>" in Path("out/report.html").read_text(encoding="utf-8")
    assert json.loads(Path("out/summary.json").read_text(encoding="utf-8"))["film"]["n_frames"] == len(series)
    python = sys.version.split()[0]
    print(f"psmt {psmt.__version__} on Python {python}: all works; {extras} modules need an extra")


main()
