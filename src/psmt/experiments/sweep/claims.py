"""What the paper claims of Table 1, and whether it holds."""

from __future__ import annotations

from itertools import pairwise

from psmt.experiments.sweep.result import Combination, SweepResult
from psmt.report import TIE, UNTOLD, Claim, some


def sweep_claims(result: SweepResult | None, note: str = "") -> list[Claim]:
    """Table 1."""
    return [more_atoms(result, note), more_frames(result, note)]


def more_atoms(result: SweepResult | None, note: str = "") -> Claim:
    """Table 1 from top to bottom."""
    text = "More atoms help: a larger dictionary reconstructs better"
    rule = "the trimmed mean MSE is lower with the largest M than with the smallest, at each H / M"
    named: dict[str, list[tuple[str, Combination]]] = {}
    for ratio_, row in _measured(result):
        named.setdefault(f"H = {ratio_:g} M", []).append((f"M = {row.n_atoms:,}", row))
    return _trend("more_atoms", text, rule, named, note)


def more_frames(result: SweepResult | None, note: str = "") -> Claim:
    """Table 1 from left to right."""
    text = "More frames help: a longer window reconstructs better"
    rule = "the trimmed mean MSE is lower with the largest H than with the smallest, at each M"
    named: dict[str, list[tuple[str, Combination]]] = {}
    for _, row in _measured(result):
        named.setdefault(f"M = {row.n_atoms:,}", []).append((f"H = {row.window:,}", row))
    return _trend("more_frames", text, rule, named, note)


def _measured(result: SweepResult | None) -> list[tuple[float, Combination]]:
    """H / M and the figures of the combinations that the film has room for."""
    if result is None:
        return []
    ratios = result.settings.ratios
    return [(ratios[k % len(ratios)], row) for k, row in enumerate(result.table()) if not row.missing]


def _trend(key: str, text: str, rule: str, lines: dict[str, list[tuple[str, Combination]]], note: str) -> Claim:
    comparable = {head: row for head, row in lines.items() if len(row) > 1}
    if not comparable:
        sizes = "; ".join(f"{head}: only {row[0][0]}" for head, row in lines.items())
        return Claim(
            key=key,
            text=text,
            rule=rule,
            outcome=UNTOLD,
            notes=some(note, f"nothing to compare ({sizes})" if sizes else ""),
        )
    support: list[str] = []
    against: list[str] = []
    held = []
    for head, rows in comparable.items():
        means = [row.trimmed_mean for _, row in rows]
        chain = " → ".join(f"{mean:.3g} ({name})" for mean, (name, _) in zip(means, rows, strict=True))
        falls = means[-1] < (1 - TIE) * means[0]
        held.append(falls)
        (support if falls else against).append(f"{head}: MSE {chain}")
        if falls and any(later > (1 + TIE) * earlier for earlier, later in pairwise(means)):
            against.append(f"{head}: not at every step of that chain")
        first, last = rows[0][1].mean, rows[-1][1].mean
        if falls != (last < (1 - TIE) * first):
            (against if falls else support).append(f"{head}: untrimmed, the mean goes from {first:.3g} to {last:.3g}")
    return Claim(
        key=key,
        text=text,
        rule=rule,
        outcome="holds" if all(held) else "does not hold",
        support=tuple(support),
        against=tuple(against),
        notes=some(note),
        figures={
            head: {name: {"trimmed_mean": row.trimmed_mean, "mean": row.mean} for name, row in rows}
            for head, rows in comparable.items()
        },
    )
