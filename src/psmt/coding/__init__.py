"""Layer 1: sparse non-negative codes over an overcomplete dictionary (steps 1 to 3 of the paper)."""

from psmt.coding.sparse_coder import SparseCoder

__all__ = ["SparseCoder"]
