"""Layer 2: the linear embedding in which the scene moves along lines that are as straight as possible (step 5)."""

from psmt.embedding.closed_form import Embedding, embed_window, solve_closed_form
from psmt.embedding.followed import FollowedEmbedding
from psmt.embedding.temporal import TemporalEmbedding

__all__ = [
    "Embedding",
    "FollowedEmbedding",
    "TemporalEmbedding",
    "embed_window",
    "solve_closed_form",
]
