"""The topology as an experiment, and its report: its tests, and whether claims about Fig. 3 exceed null models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from psmt.evaluation.null_models import NullTest
from psmt.experiments.contract import Experiment
from psmt.experiments.topology.figure import atom_map_figure, topology_figure
from psmt.experiments.topology.measures import LEAST, MAX_SHIFT
from psmt.experiments.topology.run import TopologyResult, topology
from psmt.experiments.topology.settings import RULE, Row, TopologySettings
from psmt.figures import png
from psmt.report import Claim, Column, Evidence, Picture, Section, Table, all_hold, csv_parts
from psmt.report.numbers import percent, plus, ratio, signed


def topology_section(result: TopologyResult, figure: bytes, atom_map: bytes) -> Section:
    """Section with the two figures as PNG files."""
    settings = result.settings
    rule = f"They are the {RULE}" if settings.chosen is None else "They were given"
    return Section(
        title="The topology of the embedding",
        text=[
            f"{settings.n_atoms:,} atoms, {len(result.graphs)} windows of {settings.window:,} frames, "
            f"{result.step:,} frames from one to the next. Two atoms are linked in a window if their columns of "
            f"P have a cosine above {settings.threshold:g} and both are used in {settings.min_uses} frames or more. "
            f"Linked atoms form components. Atoms that are followed: {len(result.chosen)}. {rule}.",
            "Neighbouring windows share almost all frames, so their graphs are alike in any film. The tests therefore "
            f"compare {len(result.design.windows)} parts of the film that share no frame, and compare the film with "
            "null models. Frames in random order: atoms are active together as before, but do not move. Blocks of "
            "frames dealt out at random: atoms move as before, but at other times.",
        ],
        pictures=[
            Picture(figure, alt="Chosen atoms over time, their components, their most similar atoms, and three tests"),
            Picture(
                atom_map,
                alt="All used atoms, arranged so that neighbours move together",
                caption="The whole topology, which the paper does not show: atoms that are active together, or one "
                "after the other, are neighbours.",
            ),
        ],
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
        change = "links shared at the same time less at other times"
        tests.insert(0, (change, "blocks dealt out at random", result.change.dealt))
    columns = [
        Column("what", lambda row: row[0]),
        Column("null model", lambda row: row[1]),
        Column("film", lambda row: row[2].value, _number),
        Column("null model, mean", lambda row: row[2].null_mean, _number),
        Column("beyond", lambda row: row[2].excess.mean, _number),
        Column("from", lambda row: row[2].excess.low, _number),
        Column("to", lambda row: row[2].excess.high, _number),
        Column("p", lambda row: row[2].p_value, lambda p: f"{p:.2g}" if np.isfinite(p) else "–"),
    ]
    caption = "The film compared with null models; beyond: film less null model, with its 90% interval"
    return Table.of(caption, tests, columns)


def _number(value: float) -> str:
    return signed(value) if np.isfinite(value) else "–"


LEAST_REPEATED = 0.1
"""Share of links that two sets of the same time must have in common before a change can be seen."""

LEAST_LINKS = 40
"""Links needed for a verdict, over all windows or sets. With fewer, a single link could change it."""

LEAST_TIMES = 3.0
"""Links must last this many times as often as with the atoms of each window permuted."""


CLAIMS = {
    "clusters_change": (
        "Clusters change over time",
        "frames of the same time share more of their links than frames of different times, by 5 in 100 or more beyond "
        "blocks of frames that are dealt out at random",
    ),
    "clusters_persist": (
        "Clusters persist across time",
        "windows without a common frame share links, by 5 in 100 or more beyond frames in random order, and at least "
        f"{LEAST_TIMES:g} times as many as with permuted atoms",
    ),
    "linked_look_alike": (
        "Similar in the embedding means similar as pictures",
        "linked atoms correlate more, pixel by pixel, than unlinked ones, by 0.05 or more beyond permuted pictures and "
        "beyond the links of frames in random order",
    ),
}
"""Fig. 3 (a) to (c): text and rule of each claim."""


def topology_claims(result: TopologyResult | None, note: str = "") -> list[Claim]:
    """The claims about a result; without a result all are inconclusive."""
    if result is None:
        return [_claim(key, [], notes=[note]) for key in CLAIMS]
    return [clusters_change(result, note), clusters_persist(result, note), linked_look_alike(result, note)]


def clusters_change(result: TopologyResult, note: str = "") -> Claim:
    """Sets of frames of the same time, compared with sets of different times."""
    change, design, stay = result.change, result.design, result.persistence
    if change is None:
        reason = (
            f"the codes have a memory of {design.memory} frames or more, so that parts of {design.windows.shape[1]:,} "
            f"frames have too few blocks of {design.block}; use a longer film"
        )
        return _claim("clusters_change", [], notes=[note, reason])
    if not np.isfinite(change.dealt.value):
        return _claim("clusters_change", [], notes=[note, _no_links(result)])
    too_few = [_too_few_links(change.links)]
    if change.same_time < LEAST_REPEATED:
        too_few += [f"sets of the same time share less than {percent(LEAST_REPEATED)} of their links: mostly noise"]
    evidence = _share_of_links(
        "links shared at the same time less at other times, beyond blocks dealt out at random",
        change.dealt,
        n=change.links,
        too_few="; ".join(filter(None, too_few)),
        details=f"; shared at the same time: {percent(change.same_time)}, at other times: {percent(change.other_time)}",
    )
    sizes = result.component_size[:, list(result.chosen)]
    ranges = zip(result.chosen, sizes.min(axis=0), sizes.max(axis=0), strict=True)
    notes = [
        f"{len(design.windows)} parts of the film, two sets of {design.sets.shape[1]:,} frames in each, in blocks of "
        f"{design.block} frames; the codes have a memory of {design.memory} frames",
        f"of the atoms with links in any window, {stay.always_linked:,} have links in all windows and "
        f"{stay.sometimes_linked:,} in some; sizes of the components of the chosen atoms: "
        + ", ".join(f"{low} to {high} for atom {atom}" for atom, low, high in ranges),
        note,
    ]
    return _claim("clusters_change", [evidence], size=_more_links(evidence), notes=notes, figures=change.summary())


def clusters_persist(result: TopologyResult, note: str = "") -> Claim:
    """Windows without a common frame, compared with null models: windows with common frames share links anyway."""
    lasting, windows, share = result.lasting, result.design.windows, result.persistence.shared[0]
    frames = max(0.0, 1 - result.step / result.settings.window)
    neighbours = (
        f"neighbouring windows share {percent(share)} of their links, but also {percent(frames)} of their frames; "
        "this does not enter the verdict"
    )
    neighbours = neighbours if np.isfinite(share) else ""
    if not np.isfinite(lasting.share):
        return _claim("clusters_persist", [], notes=[note, _no_links(result), neighbours])
    in_random_order, permuted = lasting.shuffled.null_mean, lasting.permuted.null_mean
    times = f"{ratio(lasting.share / permuted)} times the {percent(permuted)}" if permuted > 0 else "none"
    share_of_links = partial(_share_of_links, n=lasting.links, too_few=_too_few_links(lasting.links))
    evidence = [
        share_of_links(
            "links shared by windows without a common frame, beyond frames in random order",
            lasting.shuffled,
            details=f"; shared: {percent(lasting.share)}, {percent(in_random_order)} with frames in random order",
        ),
        share_of_links(
            "links shared by windows without a common frame, beyond permuted atoms",
            lasting.permuted,
            threshold=(LEAST_TIMES - 1) * permuted,
            details=f"; shared: {percent(lasting.share)}, {times} with permuted atoms",
        ),
    ]
    notes = [
        f"{len(windows)} windows of {windows.shape[1]:,} frames; with frames in random order, links show which atoms "
        "are active together, not how they move",
        neighbours,
        note,
    ]
    size = _more_links(evidence[0])
    return _claim("clusters_persist", evidence, size=size, notes=notes, figures=lasting.summary())


def linked_look_alike(result: TopologyResult, note: str = "") -> Claim:
    """Likeness of linked atoms. Pictures in place decide; shifted pictures are reported beside them."""
    if not np.isfinite(result.likeness.difference):
        return _claim("linked_look_alike", [], notes=[note, _no_links(result)])
    shifted = f", shifted by up to {MAX_SHIFT} pixels"
    evidence = [
        Evidence(
            name=f"correlation of linked less unlinked atoms{how}, beyond {null}",
            statistic=test.excess,
            threshold=LEAST,
            n=result.lasting.links,
            too_few=_too_few_links(result.lasting.links),
            details=f"; {signed(measure.linked)} linked, {signed(measure.unlinked)} unlinked",
        )
        for how, measure in (("", result.likeness), (shifted, result.shifted_likeness))
        if measure is not None
        for null, test in (("permuted pictures", measure.permuted), ("frames in random order", measure.shuffled))
    ]
    in_place = evidence[:2]
    return _claim(
        "linked_look_alike",
        evidence,
        verdict=all_hold([own.verdict for own in in_place]),
        size=f"correlation {plus(signed(min(own.statistic.mean for own in in_place)))}",
        notes=[note],
        figures=result.likeness.summary(),
    )


def _claim(key: str, evidence: Sequence[Evidence], **how: Any) -> Claim:
    return Claim.from_evidence(key, *CLAIMS[key], evidence, **how)


def _share_of_links(name: str, test: NullTest, *, threshold: float = LEAST, **how: Any) -> Evidence:
    """Evidence that is a share of links beyond a null model."""

    def write(share: float) -> str:
        return f"{round(100 * share)}".replace("-", "−")

    return Evidence(name=name, statistic=test.excess, threshold=threshold, write=write, unit=" in 100", **how)


def _more_links(evidence: Evidence) -> str:
    return f"{plus(evidence.write(evidence.statistic.mean))} links in 100"


def _too_few_links(count: int) -> str:
    return f"there are only {count} links; {LEAST_LINKS} are needed" if count < LEAST_LINKS else ""


def _no_links(result: TopologyResult) -> str:
    if np.isfinite(result.likeness.difference) or np.isfinite(result.lasting.share):
        return ""
    return f"no two atoms that are used in {result.settings.min_uses} frames or more are linked"


EXPERIMENT = Experiment[TopologySettings, TopologyResult](
    run=lambda values, settings, run, _: topology(values, settings, run),
    files={
        "topology.png": lambda result: png(topology_figure(result)),
        "atom_map.png": lambda result: png(atom_map_figure(result)),
        "topology.csv": lambda result: csv_parts(Row._fields, result.rows()),
    },
    shown=topology_claims,
    claims=topology_claims,
    sections=lambda result, files: [topology_section(result, files["topology.png"], files["atom_map.png"])],
    summary=TopologyResult.summary,
)
