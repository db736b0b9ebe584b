"""Layer 2: the linear embedding in which the scene moves as straight as possible (step 5 of the paper)."""

from psmt.embedding.closed_form import Embedding, embed_window, solve_closed_form
from psmt.embedding.followed import FollowedEmbedding
from psmt.embedding.stochastic import StochasticEmbedding
from psmt.embedding.temporal import TemporalEmbedding, solve_window

__all__ = [
    "Embedding",
    "FollowedEmbedding",
    "StochasticEmbedding",
    "TemporalEmbedding",
    "embed_window",
    "solve_closed_form",
    "solve_window",
]
