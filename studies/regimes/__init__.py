"""Regimes: at which speed and noise which method predicts better than copying, on the built-in film."""
