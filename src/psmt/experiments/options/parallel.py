"""What the commands take that cut their work into tasks."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from psmt.errors import PSMTError
from psmt.experiments.options.film import FilmOptions
from psmt.experiments.options.parameters import unless_auto

if TYPE_CHECKING:
    from concurrent.futures import Executor

MEMORY = 3.2
"""GiB that worker processes may take together by default; the run itself needs the rest of 4."""


@dataclass(frozen=True, kw_only=True)
class ParallelOptions(FilmOptions):
    """What the commands take that code patches, and cut their work into tasks: layer 1, the seed, processes."""

    alpha: Annotated[float, Parameter(help="α: price of activity in layer 1, sparse coding.")] = 1.0
    seed: Annotated[int, Parameter(help="Seed of the dictionary's first atoms.")] = 0
    workers: Annotated[
        int | None,
        Parameter(
            help="Processes. Left out: one per CPU, as many as 4 GiB of memory hold.", metavar="INT", show_default=False
        ),
    ] = None
    cluster: Annotated[
        str | None,
        Parameter(
            help="Address of a Dask scheduler whose workers are used instead, see docs/how-to/cluster.md.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None

    def check(self) -> None:
        """As for all commands; layer 1 and its seed; and not both processes and a cluster."""
        super().check()
        from psmt.utils.validation import check_count, check_real

        check_count("seed", self.seed, minimum=0)
        if unless_auto(self.alpha, None) is not None:
            check_real("alpha", self.alpha, open_bound=True)
        if self.workers is not None:
            check_count("workers", self.workers)
            if self.cluster is not None:
                raise PSMTError(f"--workers {self.workers} has no meaning with --cluster; leave out one of them")

    def largest(self, settings: Any) -> int:
        """The largest M of the settings, which decides how many workers fit into memory."""
        return int(settings.largest)

    def executor(self, settings: Any, /) -> "AbstractContextManager[Executor | None]":
        """Processes of this machine, or those of a cluster."""
        from psmt.pipeline.executors import cpu_count, open_executor

        workers = self.workers
        if workers is None and self.cluster is None:
            # A GPU is kept busy by one process; torch and CUDA graphs do not bear several threads.
            workers = workers_for(self.largest(settings), cpu_count()) if self.device == "cpu" else 1
        return open_executor(workers, self.cluster)


def workers_for(n_atoms: int, n_cpus: int) -> int:
    """Processes for tasks of up to `n_atoms`: one per CPU, but no more than 4 GiB of memory hold.

    A worker takes 0.2 GiB, and at M = 2048 0.8 GiB, most of it in matrices of M x M.

    >>> [workers_for(2048, 64), workers_for(512, 64), workers_for(64, 4)]
    [3, 11, 4]
    """
    each = 0.25 + 0.65 * (n_atoms / 2048) ** 2
    return max(1, min(n_cpus, int(MEMORY / each)))
