"""The experiment `psmt predict`: PSMT and other methods predict stretches of a film (Fig. 4 of the paper)."""
