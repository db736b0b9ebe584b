"""The experiment `psmt sweep`: reconstruction error by number of atoms and window length (Table 1 and Fig. 2)."""
