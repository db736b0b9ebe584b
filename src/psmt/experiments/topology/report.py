"""The experiment `psmt topology`: its files, and its report with Fig. 3 and verdicts on the paper's claims about it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from psmt.evaluation.null_models import NullTest
from psmt.experiments.contract import Experiment
from psmt.experiments.topology.figure import topology_figure
from psmt.experiments.topology.measures import LEAST, LEAST_LOST, LEAST_REPEATED, MIN_BLOCKS
from psmt.experiments.topology.run import COLUMNS, TopologyResult, topology
from psmt.experiments.topology.settings import RULE, TopologySettings
from psmt.figures import png
from psmt.pipeline.run import Run
from psmt.report import Claim, Evidence, Fact, Picture, Section, Table, csv_parts
from psmt.report.numbers import percent, plus, ratio, signed
from psmt.types import Array


def topology_section(result: TopologyResult, figure: bytes) -> Section:
    """Return the section of the report with Fig. 3 (`figure`, a PNG file) and a table of the tests."""
    settings = result.settings
    sizes = "M and H are those of the lowest error in Table 1. " if settings.best_of_sweep else ""
    return Section(
        title="The topology of the embedding",
        text=[
            f"{settings.n_atoms:,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
            f"{result.step:,} frames from one to the next. Two atoms are linked in a window if their columns of "
            f"P have a cosine above {settings.threshold:g} and both are used in {settings.min_uses} frames or more. "
            f"Linked atoms form components. {sizes}The figure follows the {len(result.chosen)} {RULE}.",
            "Neighbouring windows share almost all frames, so their graphs are alike in any film. The tests therefore "
            f"compare {len(result.design.windows)} parts of the film that share no frame, and compare the film with "
            "null models. Frames in random order: atoms are active together as before, but do not move. Blocks of "
            "frames in random order: atoms move as before, but at other times. Change is tested on similarities, "
            "not on links: the cosine of the covariances of two atoms with the directions of the embedding.",
        ],
        pictures=[Picture(figure, alt="Chosen atoms over time, their components, and atoms linked to them")],
        tables=[_tests(result)],
    )


def _tests(result: TopologyResult) -> Table:
    shared, likeness = "links shared by windows without a common frame", "correlation of linked less unlinked atoms"
    tests = [
        (shared, "frames in random order", result.lasting.shuffled),
        (shared, "atoms permuted", result.lasting.permuted),
        (likeness, "pictures permuted", result.likeness.permuted),
        (likeness, "frames in random order", result.likeness.shuffled),
    ]
    if result.change is not None:
        change = "share of the similarities of atoms that is lost across a time"
        tests.insert(0, (change, "blocks in random order", result.change.reordered))
    rows = []
    for what, null, test in tests:
        written = [signed(one) if np.isfinite(one) else "–" for one in (test.value, test.null_mean, *test.excess)]
        rows.append((what, null, *written, f"{test.p_value:.2g}" if np.isfinite(test.p_value) else "–"))
    columns = ("what", "null model", "film", "null model, mean", "beyond", "from", "to", "p")
    caption = "The film compared with null models; beyond: film less null model, with its 90% interval"
    return Table.of_rows(caption, columns, rows)


LEAST_LINKS = 40
"""Smallest number of links, over all windows or sets, for a verdict. With fewer, a single link could change it."""

LEAST_TIMES = 3.0
"""Links must persist at least this many times as often as with permuted atoms."""

CLAIMS = {
    "clusters_change": (
        "Clusters change over time",
        "similarities of atoms in the embedding before and after a time agree less than within the same time, by 10 in "
        "100 or more. Beyond controls, by 10 in 100 or more beyond blocks of frames in random order",
    ),
    "clusters_persist": (
        "Clusters persist across time",
        "windows without a common frame share 5 in 100 of their links or more. Beyond controls, 5 in 100 or more "
        f"beyond frames in random order, and at least {LEAST_TIMES:g} times as many as with permuted atoms",
    ),
    "linked_look_alike": (
        "Similar in the embedding means similar as pictures",
        "linked atoms correlate more, pixel by pixel, than unlinked ones, by 0.05 or more. Beyond controls, by 0.05 or "
        "more beyond permuted pictures and beyond the links of frames in random order",
    ),
}
"""Text and rule of each claim about Fig. 3 (a) to (c)."""


def topology_claims(result: TopologyResult | None, note: str = "") -> list[Claim]:
    """Return the three claims with verdicts. Without a result, all are inconclusive. The `note` is added to each."""
    if result is None:
        return [_claim(key, [], notes=[note]) for key in CLAIMS]
    return [clusters_change(result, note), clusters_persist(result, note), linked_look_alike(result, note)]


def clusters_change(result: TopologyResult, note: str = "") -> Claim:
    """Return the claim that clusters change (atoms' similarities differ before and after a time), with its verdict."""
    change, design = result.change, result.design
    if change is None or not np.isfinite(change.reordered.value):
        reason = (
            f"the codes have a memory of {design.memory} frames or more, so that the film has fewer than {MIN_BLOCKS} "
            "blocks that are independent of each other; use a longer film"
            if change is None
            else f"similarities of atoms repeat with a correlation of {signed(change.repeated)}; below "
            f"{LEAST_REPEATED:g} they are mostly noise"
        )
        return _claim("clusters_change", [], notes=[note, reason])
    evidence = _share(
        "similarities of atoms that are lost across a time",
        {"blocks of frames in random order": change.reordered},
        threshold=LEAST_LOST,
        n=len(design.blocks),
        details=f"; before and after frame {change.frame:,} they correlate by {signed(change.across)}, with blocks in "
        f"random order by {signed(change.repeated)}",
    )
    notes = [
        f"{len(design.blocks)} blocks of {design.blocks.shape[1]:,} frames; the codes have a memory of {design.memory} "
        f"frames; times that were tried: {len(design.splits)}",
        note,
    ]
    size = f"{evidence.write(evidence.statistic.mean)} in 100 of the similarities"
    return _claim("clusters_change", [evidence], size=size, notes=notes, figures=vars(change))


def clusters_persist(result: TopologyResult, note: str = "") -> Claim:
    """Return the claim that clusters persist (windows without a common frame share links), with its verdict."""
    lasting, windows = result.lasting, result.design.windows
    if not np.isfinite(lasting.share):
        return _claim("clusters_persist", [], notes=[note, _no_links(result)])
    permuted = lasting.permuted.null_mean
    times = f"{ratio(lasting.share / permuted)} times the {percent(permuted)}" if permuted > 0 else "none"
    name = "links shared by windows without a common frame"
    share_of_links = partial(_share, name, n=lasting.links, too_few=_too_few_links(lasting.links))
    threshold, details = (LEAST_TIMES - 1) * permuted, f", {times} with permuted atoms"
    evidence = [
        share_of_links({"frames in random order": lasting.shuffled}),
        share_of_links({"permuted atoms": lasting.permuted}, threshold=threshold, details=details),
    ]
    notes = [
        f"{len(windows)} windows of {windows.shape[1]:,} frames; with frames in random order, links show which atoms "
        "are active together, not how they move",
        note,
    ]
    size = f"{plus(evidence[0].write(lasting.share))} links in 100"
    return _claim("clusters_persist", evidence, size=size, notes=notes, figures=vars(lasting))


def linked_look_alike(result: TopologyResult, note: str = "") -> Claim:
    """Return the claim that linked atoms look alike (their pixels correlate), with its verdict."""
    measured = result.likeness
    if not np.isfinite(measured.permuted.value):
        return _claim("linked_look_alike", [], notes=[note, _no_links(result)])
    evidence = Evidence.of_draws(
        "correlation of linked less unlinked atoms",
        {"permuted pictures": measured.permuted, "frames in random order": measured.shuffled},
        threshold=LEAST,
        n=result.lasting.links,
        too_few=_too_few_links(result.lasting.links),
        details=f"; {signed(measured.linked)} linked, {signed(measured.unlinked)} unlinked",
    )
    size = f"correlation {plus(signed(evidence.statistic.mean))}"
    return _claim("linked_look_alike", [evidence], size=size, notes=[note], figures=vars(measured))


def _claim(key: str, evidence: Sequence[Evidence], **how: Any) -> Claim:
    return Claim.from_evidence(key, *CLAIMS[key], evidence, **how)


def _share(name: str, tests: Mapping[str, NullTest], *, threshold: float = LEAST, **how: Any) -> Evidence:
    """Return evidence from `tests` of a share against null models, in percent. `how` are other fields of `Evidence`."""
    how |= {"write": lambda share: f"{round(100 * share)}".replace("-", "−"), "unit": " in 100"}
    return Evidence.of_draws(name, tests, threshold=threshold, **how)


def _too_few_links(count: int) -> str:
    return f"there are only {count} links; {LEAST_LINKS} are needed" if count < LEAST_LINKS else ""


def _no_links(result: TopologyResult) -> str:
    if np.isfinite(result.likeness.permuted.value) or np.isfinite(result.lasting.share):
        return ""
    return f"no two atoms that are used in {result.settings.min_uses} frames or more are linked"


def _run(values: Array, settings: TopologySettings, run: Run, earlier: Mapping[str, Any]) -> TopologyResult:
    found = earlier.get("sweep")
    if found is not None and settings.best_of_sweep:
        settings = best_sizes(settings, found.table(), len(values))
    return topology(values, settings, run)


def best_sizes(settings: TopologySettings, table: Sequence[Any], n_frames: int) -> TopologySettings:
    """Return the settings with the number of atoms and window length that had the lowest error in the sweep's `table`.

    Sizes for which the film is too short are skipped. If all are skipped, the settings are returned unchanged.
    """
    by_error = sorted((own for own in table if not own.missing), key=lambda own: own.trimmed_mean)
    sized = (replace(settings, n_atoms=own.n_atoms, window=own.window) for own in by_error)
    return next((own for own in sized if own.needed() <= n_frames), settings)


EXPERIMENT = Experiment[TopologySettings, TopologyResult](
    run=_run,
    files={
        "topology.png": lambda result: png(topology_figure(result)),
        "topology.csv": lambda result: csv_parts(COLUMNS, result.rows()),
    },
    shown=topology_claims,
    claims=topology_claims,
    sections=lambda result, files: [topology_section(result, files["topology.png"])],
    # The sizes may be those of the sweep, not those that were asked for.
    facts=lambda result: [Fact("Topology", result.settings.text())],
    summary=TopologyResult.summary,
)
