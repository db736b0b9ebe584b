"""The page of `psmt locality`, and its tables."""

from __future__ import annotations

from collections.abc import Callable
from math import exp

from psmt.evaluation import Interval
from psmt.report import TIE, Cell, Fact, Page, Picture, Section, Table
from psmt.report.numbers import percent, ratio
from studies.locality.claims import ERROR_MARGIN, locality_claims
from studies.locality.result import MATERIALS, LocalityResult, Material, versus_copying
from studies.locality.run import MADE_UP
from studies.locality.settings import SPARSE_EPOCHS, SPARSE_TOL, label

COLUMNS = ("method", "atoms", "in one place", "frames", "roughness", "MSE", "÷ copy", "missed")
"""Heads of the table; roughness and MSE are divided by the closed form's."""

NARROW = (0, 1, 2, 4, 5, 6)
"""Columns for which a narrow screen has room."""


def locality_page(result: LocalityResult, picture: bytes) -> Page:
    """Page with the figure as a PNG file."""
    settings = result.settings
    return Page(
        title="Is the stochastic solution more local?",
        lead=(
            "The paper says that its closed form may be too global to capture local dynamics, and that stochastic "
            "gradient descent better characterises locality. Converged, descent has the same minimum as the closed "
            "form; what can differ is a descent that is stopped early, and one with a price on the weights of P, as "
            "the sparse manifold transform has it. Copying and the mean are in every comparison."
        ),
        claims=locality_claims(result),
        sections=[
            Section(
                title="Rows of P, and what they predict",
                text=[
                    "In the made-up series, bumps move around rings of sensors in four places, each at a pace of its "
                    "own: all at once, or one place at a time. Which atom belongs to which place is known. Of the film "
                    "it is not.",
                    "Atoms per row is the participation ratio of the variance that each atom adds to a row. Turned is "
                    "the closed form after a rotation inside its span (varimax), which changes no prediction: steps 6 "
                    "and 7 know P by P'P alone.",
                ],
                pictures=[Picture(picture, alt="Rows of P by solution; and locality and error by material and method")],
                tables=locality_tables(result),
            )
        ],
        facts=[
            Fact(
                "On the film",
                f"M = {settings.n_atoms}, H = {settings.window}, f = {settings.components}, α = {settings.alpha:g}, "
                f"λ {settings.lam}",
            ),
            Fact(
                "Made up",
                f"{settings.n_starts} series of each kind, H = {MADE_UP['window']}, f = {MADE_UP['n_components']}, "
                f"α = {MADE_UP['alpha']:g}, λ {settings.lam}",
            ),
            Fact(
                "With a price",
                f"at most {SPARSE_EPOCHS} passes over each window, done when one moves P by {SPARSE_TOL:g}",
            ),
            Fact("Departures from the paper", settings.departures.told()),
            Fact("Seed", f"{settings.seed}"),
        ],
    )


def locality_tables(result: LocalityResult, *, intervals: bool = True) -> list[Table]:
    """A table per material: means over starts, with their intervals or, for a narrow screen, without."""
    return [
        Table(
            f"{MATERIALS[material.name]}: means over {material.n_starts} starts" + ", 95% intervals" * intervals,
            COLUMNS if intervals else [COLUMNS[i] for i in NARROW],
            [
                cells if intervals else [cells[i] for i in NARROW]
                for cells in (_row(material, method, intervals=intervals) for method in material.methods)
            ],
        )
        for material in result.materials
    ]


def _row(material: Material, method: str, *, intervals: bool) -> list[Cell]:
    def between(interval: Interval, text: Callable[[float], str]) -> str:
        if interval.mean != interval.mean:
            return "–"
        if not intervals or not interval.is_finite:
            return text(interval.mean)
        return f"{text(interval.mean)} ({text(interval.low)}–{text(interval.high)})"

    errors, copying = material.log_ratio(method, "mse"), versus_copying(material, method)
    missed = float(material.values(method, "missed").mean())
    same = method in ("closed", "turned")
    return [
        Cell(label(method)),
        Cell(between(material.interval(method, "atoms"), "{:.1f}".format)),
        Cell(between(material.interval(method, "group"), "{:.2f}".format)),
        Cell(between(material.interval(method, "frames"), "{:.2f}".format)),
        Cell("1" if same else between(material.log_ratio(method, "roughness"), _ratio)),
        Cell("1" if same else between(errors, _ratio), "loses" if errors.low > ERROR_MARGIN and not same else ""),
        Cell("1") if method == "copy" else Cell(ratio(copying), "loses" if copying > 1 + TIE else ""),
        Cell("–" if missed != missed else percent(missed) if missed else "0"),
    ]


def _ratio(logarithm: float) -> str:
    return ratio(exp(logarithm))
