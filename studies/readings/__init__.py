"""Readings of the paper: Table 1 and Fig. 4 under each way to fill in what it leaves open."""
