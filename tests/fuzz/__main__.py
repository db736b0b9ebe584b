"""make fuzz: thousands of cases on every target, and the kernels with their bounds checked."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from time import monotonic

from fuzz.running import Attack, told
from fuzz.targets import TARGETS, all_alterations


def cases(target: str, wanted: int, seed: int) -> Iterator[tuple[str, int]]:
    """Numbers of a target; alterations have an end, and are drawn from all of them."""
    if target == "alterations":
        numbers = all_alterations()
        yield from ((target, number) for number in random.Random(seed).sample(numbers, k=min(wanted, len(numbers))))
        return
    yield from ((target, seed * 1_000_000 + number) for number in range(wanted))


def main() -> int:
    """Run all cases; 1 if any of them failed."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all of them if none is named")
    parser.add_argument("--cases", type=int, default=1000, help="on each target")
    parser.add_argument("--seed", type=int, default=1, help="other seeds give other cases")
    parser.add_argument("--seconds", type=float, default=1e9, help="go on to the next target after this time")
    parser.add_argument("--only", type=int, help="one number of the targets, to see it again")
    asked = parser.parse_args()
    failed = 0
    with Attack() as attack:
        for target in asked.targets or TARGETS:
            outcomes: Counter[str] = Counter()
            numbers = cases(target, asked.cases, asked.seed) if asked.only is None else [(target, asked.only)]
            slowest, memory, began = 0.0, 0, monotonic()
            for outcome in attack.run(numbers):
                memory = max(memory, outcome.get("memory", 0))
                outcomes[outcome["ended"]] += 1
                slowest = max(slowest, outcome["seconds"])
                if outcome["ended"] == "failed" or asked.only is not None:
                    case = f"{target} {outcome['number']} ({outcome['case']})"
                    print(f"{case}: {outcome['ended']}\n{outcome['why']}\n", flush=True)
                if monotonic() - began > asked.seconds:
                    break
            failed += outcomes["failed"]
            cost = f"{monotonic() - began:.0f} s in all, the slowest {slowest:.1f} s, peak memory {memory >> 20:,} MiB"
            print(f"{target}: {told(outcomes)}; {cost}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
