"""Declaration and report of the study: a table per material, the figure, and the settings."""

from __future__ import annotations

from collections.abc import Callable

from psmt.evaluation import Interval
from psmt.experiments.contract import Experiment
from psmt.figures import png
from psmt.report import TIE, Cell, Column, Fact, Page, Picture, Section, Table, to_csv
from psmt.report.numbers import percent, ratio
from studies.locality.claims import ERROR_MARGIN, locality_claims, log_ratio
from studies.locality.figure import locality_figure
from studies.locality.result import MATERIALS, LocalityResult, LocalityRow, Material, versus_copying
from studies.locality.run import MADE_UP, locality
from studies.locality.settings import SPARSE_EPOCHS, SPARSE_TOL, LocalitySettings, label


def locality_page(result: LocalityResult, picture: bytes) -> Page:
    """Return the page of the report. `picture` is the figure as a PNG file."""
    settings = result.settings
    return Page(
        title="Is the stochastic solution more local?",
        lead=(
            "The paper says that its closed form may be too global to capture local dynamics, and that stochastic "
            "gradient descent better characterises locality. Converged descent has the same minimum as the closed "
            "form. What can differ is descent that is stopped early, or that has a sparsity penalty on the weights of "
            "P, as in the sparse manifold transform. All are also compared with copying and with the mean."
        ),
        claims=locality_claims(result),
        sections=[
            Section(
                title="Rows of P, and what they predict",
                text=[
                    "In the made-up series, bumps move around rings of sensors in four places, at a different speed in "
                    "each: in all places at once, or in one place at a time. It is known which atom belongs to which "
                    "place. For the film it is not known.",
                    "Atoms per row is the participation ratio of the variance that each atom adds to a row. “Rotated” "
                    "is the closed form after a rotation within its span (varimax). A rotation does not change "
                    "predictions, because steps 6 and 7 depend only on P'P.",
                ],
                pictures=[Picture(picture, alt="Rows of P by solution; and locality and error by material and method")],
                tables=locality_tables(result),
            )
        ],
        facts=[
            Fact("Starts in the film", f"{settings.n_starts}, of {settings.horizon} frames each"),
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
                "With a sparsity penalty",
                f"at most {SPARSE_EPOCHS} passes over each window; the last one moves P by at most {SPARSE_TOL:g}",
            ),
            Fact("Departures from the paper", settings.departures.describe()),
            Fact("Seed", f"{settings.seed}"),
        ],
    )


def locality_tables(result: LocalityResult, *, intervals: bool = True) -> list[Table]:
    """Return a table of means over starts for each material. `intervals` adds their intervals."""
    return [_table(material, intervals=intervals) for material in result.materials]


def _table(material: Material, *, intervals: bool) -> Table:
    def measure(name: str, what: str, decimals: int) -> Column:
        return Column(name, lambda method: material.interval(method, what), write(f"{{:.{decimals}f}}".format))

    def write(number: Callable[[float], str]) -> Callable[[Interval], str]:
        def text(interval: Interval) -> str:
            if interval.mean != interval.mean:
                return "–"
            if not intervals or not interval.is_finite:
                return number(interval.mean)
            return f"{number(interval.mean)} ({number(interval.low)}–{number(interval.high)})"

        return text

    def relative(name: str, what: str, loses: Callable[[str], bool] | None = None) -> Column:
        def value(method: str) -> Interval | Cell:
            return Cell("1") if method in ("closed", "turned") else material.log_ratio(method, what)

        return Column(name, value, write(log_ratio), loses=loses)

    def missed(method: str) -> str:
        share = float(material.values(method, "missed").mean())
        return "–" if share != share else percent(share) if share else "0"

    columns = [
        Column("method", label),
        measure("atoms", "atoms", 1),
        measure("in one place", "group", 2),
        measure("frames", "frames", 2),
        relative("roughness", "roughness"),
        relative("MSE", "mse", lambda method: material.log_ratio(method, "mse").low > ERROR_MARGIN),
        Column(
            "÷ copy",
            lambda method: Cell("1") if method == "copy" else versus_copying(material, method),
            ratio,
            loses=lambda method: versus_copying(material, method) > 1 + TIE,
        ),
        Column("not converged", missed),
    ]
    caption = f"{MATERIALS[material.name]}: means over {material.n_starts} starts" + ", 95% intervals" * intervals
    return Table.of(f"{caption}; roughness and MSE ÷ closed form's", material.methods, columns)


EXPERIMENT = Experiment[LocalitySettings, LocalityResult](
    run=lambda values, settings, run, _: locality(values, settings, run),
    files={
        "locality.csv": lambda result: to_csv(LocalityRow._fields, result.rows()),
        "locality.png": lambda result: png(locality_figure(result)),
    },
    shown=lambda result: [*locality_tables(result, intervals=False), *locality_claims(result)],
    page=lambda result, files: locality_page(result, files["locality.png"]),
    summary=lambda result: [row._asdict() for row in result.rows()],
)
