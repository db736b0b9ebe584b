"""The experiment `psmt reconstruct`: one embedding of all frames, as in the original sparse manifold transform."""
