"""A page in the browser that shows a camera or film, and the predictions of a model that learns from it.

source -> feed (newest frame only) -> session (one thread: predict, score, learn) -> server (newest snapshot only)
"""
