"""What the paper claims of Fig. 3, and whether it holds beyond the nulls."""

from __future__ import annotations

import numpy as np

from psmt.evaluation import Interval
from psmt.evaluation.null_test import Measured
from psmt.experiments.topology.result import TopologyResult
from psmt.report import INCONCLUSIVE, Claim, Verdict, all_hold, judged, some
from psmt.report.numbers import percent, plus, ratio, signed

LEAST = 0.05
"""Effect that is worth the name: 5 links of 100, or a correlation of 0.05, beyond the null."""

LEAST_REPEATED = 0.1
"""Share of links that two sets of the same time both have, at least, where change can be seen at all."""

LEAST_LINKS = 40
"""Links of all windows or sets together, at least, or one more of them would change the verdict."""

LEAST_TIMES = 3.0
"""Times that links last more often than if the atoms of a window were permuted."""


def topology_claims(result: TopologyResult | None, note: str = "") -> list[Claim]:
    """Fig. 3."""
    return [
        clusters_change(result, note),
        clusters_persist(result, note),
        linked_look_alike(result, note),
    ]


def clusters_change(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (a)."""
    key, text = "clusters_change", "Clusters change over time"
    rule = (
        "frames of the same time share more of their links than frames of other times, by 5 in 100 or more beyond "
        "what blocks of frames that are dealt out at random give"
    )
    change = None if result is None else result.change
    if result is None or change is None or not np.isfinite(change.dealt.value):
        reason = _too_few_blocks(result) or _no_links(result)
        return Claim(key=key, text=text, rule=rule, verdict=INCONCLUSIVE, notes=some(note, reason))
    shares = (
        f"{percent(change.same_time)} of the links are in both of two sets of frames of the same time, "
        f"{percent(change.other_time)} of different times: {_points(change.dealt)} beyond blocks dealt out at random"
    )
    repeated = change.same_time >= LEAST_REPEATED
    outcome = exceeds(change.dealt, LEAST) if repeated and change.links >= LEAST_LINKS else INCONCLUSIVE
    stay, design = result.persistence, result.design
    sizes = result.component_size[:, list(result.chosen)]
    chosen = ", ".join(
        f"{low} to {high} for atom {atom}"
        for atom, low, high in zip(result.chosen, sizes.min(axis=0), sizes.max(axis=0), strict=True)
    )
    return Claim(
        key=key,
        text=text,
        rule=rule,
        verdict=outcome,
        size=_more(change.dealt),
        support=some(shares if outcome == "holds" else ""),
        against=some(shares if outcome == "does not hold" else ""),
        notes=some(
            shares if outcome == INCONCLUSIVE else "",
            _few_links(change.links),
            ""
            if repeated
            else f"where frames of the same time share less than {percent(LEAST_REPEATED)} of their links, the graphs "
            "are mostly noise of the estimate, and no change of theirs says that the film's clusters change",
            f"{len(design.windows)} parts of the film, two sets of {design.sets.shape[1]:,} frames in each, in blocks "
            f"of {design.block} frames: codes remember {design.memory}",
            f"of the atoms with links in any window, {stay.always_linked:,} have them in all windows and "
            f"{stay.sometimes_linked:,} in some; atoms in the component of those followed: {chosen}",
            note,
        ),
        figures=change.summary(),
    )


def clusters_persist(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (b), judged by windows without common frames: where most frames are shared, links stay by themselves."""
    key, text = "clusters_persist", "Clusters persist across time"
    rule = (
        "windows without a common frame share 5 in 100 of their links or more beyond what they share with their "
        f"frames in random order, and {LEAST_TIMES:g} times as many as with their atoms permuted"
    )
    near = "" if result is None else _built_in(result)
    if result is None or not np.isfinite(result.lasting.share):
        return Claim(key=key, text=text, rule=rule, verdict=INCONCLUSIVE, notes=some(note, _no_links(result), near))
    lasting, design = result.lasting, result.design
    by_chance = float(np.mean(lasting.permuted.null))
    order = (
        f"{percent(lasting.share)} of the links are in both of two windows without a common frame, "
        f"{percent(float(np.mean(lasting.shuffled.null)))} with their frames in random order: "
        f"{_points(lasting.shuffled)} beyond it"
    )
    atoms = (
        f"{percent(lasting.share)} is {ratio(lasting.share / by_chance)} times the {percent(by_chance)} that they "
        "share with their atoms permuted"
        if by_chance > 0
        else f"with their atoms permuted they share no link, as is they share {percent(lasting.share)}"
    )
    lines: list[tuple[Verdict, str]] = [
        (exceeds(lasting.shuffled, LEAST), order),
        (exceeds(lasting.permuted, (LEAST_TIMES - 1) * by_chance), atoms),
    ]
    if lasting.links < LEAST_LINKS:
        lines = [(INCONCLUSIVE, line) for _, line in lines]
    return Claim(
        key=key,
        text=text,
        rule=rule,
        verdict=all_hold([outcome for outcome, _ in lines]),
        size=_more(lasting.shuffled),
        support=_said(lines, "holds"),
        against=_said(lines, "does not hold"),
        notes=some(
            *_said(lines, INCONCLUSIVE),
            _few_links(lasting.links),
            f"{len(design.windows)} windows of {design.windows.shape[1]:,} frames; with frames in random order, links "
            "say which atoms are active together, not how they move",
            near,
            note,
        ),
        figures=lasting.summary(),
    )


def linked_look_alike(result: TopologyResult | None, note: str = "") -> Claim:
    """Fig. 3 (c)."""
    key, text = "linked_look_alike", "Similar in the embedding means similar as pictures"
    rule = (
        "linked atoms correlate more, pixel by pixel, than unlinked ones, by 0.05 or more beyond what permuted "
        "pictures give, and beyond the links of frames in random order"
    )
    if result is None or not np.isfinite(result.likeness.difference):
        return Claim(key=key, text=text, rule=rule, verdict=INCONCLUSIVE, notes=some(note, _no_links(result)))
    nulls = result.likeness.permuted, result.likeness.shuffled
    lines: list[tuple[Verdict, str]] = []
    for name, test in (("", result.likeness), (", shifted by up to 2 pixels", result.shifted_likeness)):
        if test is None:
            continue
        line = (
            f"correlation{name}: {signed(test.linked)} linked, {signed(test.unlinked)} unlinked; the difference is "
            f"{_interval(test.permuted)} beyond permuted pictures, {_interval(test.shuffled)} beyond frames in random "
            "order"
        )
        outcome = all_hold([exceeds(null, LEAST) for null in (test.permuted, test.shuffled)])
        lines.append((outcome if result.lasting.links >= LEAST_LINKS else INCONCLUSIVE, line))
    return Claim(
        key=key,
        text=text,
        rule=rule,
        # In place; what shifted pictures say is told beside it.
        verdict=lines[0][0],
        size=f"correlation {plus(signed(min(null.beyond().mean for null in nulls)))}",
        support=_said(lines, "holds"),
        against=_said(lines, "does not hold"),
        notes=some(*_said(lines, INCONCLUSIVE), _few_links(result.lasting.links), note),
        figures=result.likeness.summary(),
    )


def exceeds(measured: Measured, least: float) -> Verdict:
    """Whether a value lies beyond its null by `least` or more, as far as the draws of the null can tell."""
    mean, low, high = measured.beyond()
    return judged(Interval(least - mean, least - high, least - low), margin=0.0)


def _said(lines: list[tuple[Verdict, str]], outcome: Verdict) -> tuple[str, ...]:
    return tuple(line for own, line in lines if own == outcome)


def _more(measured: Measured) -> str:
    """The effect in a few words."""
    return f"{plus(f'{round(100 * measured.beyond().mean)}')} links in 100"


def _points(measured: Measured) -> str:
    """Links in 100 beyond the null, with their interval."""
    mean, low, high = (f"{round(100 * value) if np.isfinite(value) else value:g}" for value in measured.beyond())
    return f"{mean} in 100 ({low} to {high})".replace("-", "−")


def _interval(measured: Measured) -> str:
    mean, low, high = (signed(value) if np.isfinite(value) else "∞" for value in measured.beyond())
    return f"{mean} ({low} to {high})"


def _built_in(result: TopologyResult) -> str:
    """What neighbouring windows share."""
    share = result.persistence.shared[0]
    if not np.isfinite(share):
        return ""
    frames = max(0.0, 1 - result.step / result.settings.window)
    return (
        f"neighbouring windows share {percent(share)} of their links, but also {percent(frames)} of their frames: "
        "that much is nearly built in, and decides nothing"
    )


def _few_links(count: int) -> str:
    return f"there are {count} links, too few to tell; {LEAST_LINKS} would do" if count < LEAST_LINKS else ""


def _too_few_blocks(result: TopologyResult | None) -> str:
    if result is None or result.change is not None:
        return ""
    design = result.design
    return (
        f"codes remember {design.memory} frames or more: parts of {design.windows.shape[1]:,} frames have too few "
        f"blocks of {design.block} to deal out; a longer film has more"
    )


def _no_links(result: TopologyResult | None) -> str:
    if result is None or np.isfinite(result.likeness.difference) or np.isfinite(result.lasting.share):
        return ""
    return f"no two atoms that are used in {result.settings.min_uses} frames or more are linked"
