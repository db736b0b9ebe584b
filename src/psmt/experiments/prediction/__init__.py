"""Prediction: PSMT and the methods that it is compared with, on stretches of a film (Fig. 4 of the paper)."""
