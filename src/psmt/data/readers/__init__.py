"""Readers of videos, images, arrays, tables, brain scans and streams."""
