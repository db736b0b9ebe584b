"""Layer 2: the linear embedding in which the scene moves as straight as possible (step 5 of the paper)."""

from psmt.embedding.closed_form import Embedding, straightest
from psmt.embedding.followed import TrackedEmbedding
from psmt.embedding.temporal import TemporalEmbedding

__all__ = ["Embedding", "TemporalEmbedding", "TrackedEmbedding", "straightest"]
