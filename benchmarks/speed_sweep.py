"""`psmt sweep` at the paper's sizes against the paper's procedure, both from a measured part of them."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning

from benchmarks.measure import ALPHA, Row, dictionary, once, oracles, patches, pinned
from psmt import SparseCoder
from psmt.experiments.film_tasks import code_patches, reconstruct_window
from psmt.experiments.sweep.settings import SweepSettings

LAM = 0.1
"""One of the prices of the sweep: the paper has one."""

FRAMES = 2
"""Frames of a window that the literal procedure codes and recovers; all of them take as long each."""


def sweep() -> list[Row]:
    """The sum over all M, H and windows of a film of 10,000 frames.

    Ours: for each M one epoch of the dictionary times the epochs, the codes, and one window of the middle H times the
    number of windows. The paper's: for each M three batches of scikit-learn's dictionary times those of as many
    epochs, and for one window its embedding as written, and the codes and recoveries of a few frames times all frames
    of all windows.
    """
    settings, film = SweepSettings(), patches()
    ours = theirs = 0.0
    with pinned(1):
        for n_atoms in settings.n_atoms:
            windows = [(h, len(settings.segments(h, len(film)))) for h in settings.windows(n_atoms)]
            middle = windows[len(windows) // 2][0]
            atoms = dictionary(n_atoms)
            given = {"dictionary": atoms, "n_components": settings.components(n_atoms), "lam": LAM}
            codes = code_patches(patches=film[:middle], dictionary=atoms, alpha=settings.alpha)
            epoch = once(lambda m=n_atoms: SparseCoder(n_atoms=m, max_epochs=1, random_state=0).fit(film))
            coding = once(lambda d=atoms: code_patches(patches=film, dictionary=d, alpha=settings.alpha))
            cell = once(lambda h=middle, g=given | {"codes": codes}: reconstruct_window(patches=film[:h], **g))
            ours += settings.max_epochs * epoch + coding + cell * sum(count for _, count in windows)

            batch = once(lambda m=n_atoms, d=atoms: _learn(film[:768], m, d)) / 3
            frame, window = _literal(film[:middle], atoms, given["n_components"], LAM)
            theirs += settings.max_epochs * len(film) / 256 * batch
            theirs += sum(count * (window + h * frame) for h, count in windows)
    return [Row("psmt sweep, M = 512, 1024, 2048", "the paper's procedure", ours, theirs, 20, "both estimated")]


def _learn(samples: np.ndarray, n_atoms: int, start: np.ndarray) -> None:
    peer = MiniBatchDictionaryLearning(n_atoms, alpha=ALPHA, dict_init=start, fit_algorithm="cd", positive_code=True)
    for first in range(0, len(samples), 256):
        peer.partial_fit(samples[first : first + 256])


def _literal(film: np.ndarray, atoms: np.ndarray, n_components: int, lam: float) -> tuple[float, float]:
    """Seconds per frame and per window of the paper's procedure; V gets full rank by a little noise on the codes."""
    literal = oracles()
    codes = SparseCoder.from_dictionary(atoms, alpha=ALPHA).transform(film).T
    noisy = codes + 0.05 * np.random.default_rng(0).random(codes.shape)
    found = []
    window = once(lambda: found.append(literal.embedding(noisy, n_components, centred=True, full=False)))
    coding = once(lambda: literal.lars_codes(film[:FRAMES], atoms, ALPHA))
    recovery = once(lambda: [literal.recover_code(found[0], found[0] @ codes[:, t], lam) for t in range(FRAMES)])
    return (coding + recovery) / FRAMES, window
