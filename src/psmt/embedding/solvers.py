"""Step 5 of one window, by either solver."""

from __future__ import annotations

from psmt.embedding.closed_form import Embedding, embed_window
from psmt.embedding.moments import WindowMoments
from psmt.embedding.stochastic import StochasticEmbedding, check_solver
from psmt.numerics.rank import RANK_TOL


def solve_window(
    moments: WindowMoments,
    n_components: int | None,
    *,
    solver: str = "closed",
    centred: bool = True,
    half_stencils: bool = False,
    rank_tol: float = RANK_TOL,
    seed: int = 0,
) -> Embedding:
    """The embedding of a window by 'closed', or by 'sgd' from a random start; parameters as in `TemporalEmbedding`."""
    if solver == "closed":
        return embed_window(moments, n_components, centred=centred, half_stencils=half_stencils, rank_tol=rank_tol)
    check_solver(solver, device=moments.engine.device)
    return StochasticEmbedding(
        n_components, centred=centred, half_stencils=half_stencils, rank_tol=rank_tol, seed=seed
    ).update(moments)
