"""Hyper-parameter sweep: how well frames come back from the embedding, by atoms M and window H (Table 1, Fig. 2)."""
