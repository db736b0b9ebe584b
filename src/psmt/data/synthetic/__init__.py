"""Synthetic films and brain scans whose true motion or states are known."""
