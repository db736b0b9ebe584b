"""How fast is each stage, beside what a user could install instead?

    python -m benchmarks.speed [coding] [dictionary] [recovery] [embedding] [step] [sweep]

Without a name, all of them. Each writes its table into benchmarks/README.md, and its figures
to the history (`benchmarks.history`).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning

from benchmarks import history, speed_coding, speed_embedding, speed_recovery, speed_sweep
from benchmarks.measure import HEADER, Row
from benchmarks.page import machine, table, write_section

PARTS: dict[str, Callable[[], list[Row]]] = {
    "coding": speed_coding.coding,
    "dictionary": speed_coding.learning,
    "recovery": speed_recovery.recovery,
    "embedding": speed_embedding.embedding,
    "step": speed_embedding.step,
    "sweep": speed_sweep.sweep,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    parts = parser.parse_args().parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    # scikit-learn's descent stops early in places; its figures are a lower bound either way.
    warnings.simplefilter("ignore", ConvergenceWarning)
    about = machine("scikit-learn", "spams-bin", "piqp", "proxsuite", "gurobipy")
    for part in parts:
        rows = PARTS[part]()
        text = table(HEADER, [row.cells() for row in rows])
        print(f"\n{part}\n{text}", flush=True)
        write_section(f"speed {part}", f"{text}\n\n{about}")
        # A rate that is asked for is no peer: it does not slow down with the machine.
        peers = [row for row in rows if not row.peer.endswith("per second")]
        history.append((row.work, row.peer, row.ours, row.theirs) for row in peers)


if __name__ == "__main__":
    main()
