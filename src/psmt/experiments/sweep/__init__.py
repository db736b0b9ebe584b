"""Parameter sweep: reconstruction error by number of atoms M and window H (Table 1 and Fig. 2 of the paper)."""
