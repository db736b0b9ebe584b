"""Numerical methods that more than one stage uses: rank and sign, low-rank updates of eigenproblems."""
