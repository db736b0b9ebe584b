"""A live page: a camera or film in the browser, beside the predictions of a model that learns from it.

source -> feed (newest frame only) -> session (one thread: predict, score, learn) -> server (newest snapshot only)
"""
