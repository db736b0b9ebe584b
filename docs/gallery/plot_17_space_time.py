"""
What do codes of successive frames know?
========================================

A code of one frame knows what is there. A code of several successive frames also knows how it moves: its atoms are
small films. Here blocks of 8 x 8 pixels are cut at 36 places of a film, four successive frames each, so that 300 frames
give more than 10,000 blocks.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import SparseCoder, TemporalEmbedding, plot
from psmt.data import GlideFilm
from psmt.data.patches import standardise

SIDE, N_FRAMES, PLACES = 8, 4, range(0, 48, 8)
film = GlideFilm(n_frames=300, seed=3, speed=0.6, size=48)
frames = np.array([film[t] for t in range(len(film))])
blocks = np.array([[frames[:, i : i + SIDE, j : j + SIDE] for j in PLACES] for i in PLACES])
blocks = blocks.reshape(-1, len(frames), SIDE, SIDE)
# The four frames of a block lie side by side: (places, time, row, frame, column).
stacks = np.stack([blocks[:, k : len(frames) - N_FRAMES + 1 + k] for k in range(N_FRAMES)], axis=3)
X = standardise(stacks.reshape(-1, SIDE * N_FRAMES * SIDE)).values
coder = SparseCoder(n_atoms=96, alpha=1.0, random_state=0).fit(X)
codes = coder.transform(X)

# %%
# Each strip is an atom, and its four tiles are the atom's frames. Edges move through their tiles, each in its own
# direction.

order = np.argsort(-codes.sum(axis=0))
tiles = coder.dictionary_[order].reshape(-1, SIDE, N_FRAMES, SIDE)
# A blank column between frames separates the tiles.
shown = np.pad(tiles, [(0, 0), (0, 0), (0, 0), (0, 1)]).reshape(len(tiles), -1)
_, ax = plt.subplots(figsize=(8.0, 2.4), layout="constrained")
plot.atoms(shown, n=36, shape=(SIDE, N_FRAMES * (SIDE + 1)), ax=ax)

# %%
# The motion of an atom is the shift that explains the changes between its frames best, by ridge regression. Each dot is
# an atom, and its size is the atom's share of the activity. The camera turned from one heading to another, so the scene
# moved along the black arc. Atoms move in the same directions, but less far: a straight edge shows only the part of the
# motion that is across the edge.

down, right = np.gradient(tiles, axis=(1, 3))
change = np.gradient(tiles, axis=2)
moving = [slice(None), slice(1, -1), slice(1, -1), slice(1, -1)]
down, right, change = (part[tuple(moving)].reshape(len(tiles), -1) for part in (down, right, change))
velocity = []
for y, x, dt in zip(down, right, change, strict=True):
    A = np.stack([y, x], axis=1)
    velocity.append(np.linalg.solve(A.T @ A + 0.1 * np.trace(A.T @ A) * np.eye(2), -A.T @ dt))
velocity = np.array(velocity)
figure, ax = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
use = codes.mean(axis=0)[order]
ax.scatter(velocity[:, 1], velocity[:, 0], s=400 * use / use.max() + 4, alpha=0.5)
motion = film.motion()
cos, sin = np.cos(motion.angle[1:]), np.sin(motion.angle[1:])
step = np.diff(motion.row) * motion.zoom[1:], np.diff(motion.column) * motion.zoom[1:]
ax.plot(-(sin * step[0] + cos * step[1]), -(cos * step[0] - sin * step[1]), "k.", markersize=2, label="the scene")
ax.axhline(0, color="0.8", zorder=0)
ax.axvline(0, color="0.8", zorder=0)
ax.invert_yaxis()
ax.set(xlabel="to the right, pixels per frame", ylabel="down, pixels per frame", title="Motion of the atoms")
ax.legend()

# %%
# The mean code over all places is one point per frame. Its embedding follows the camera around the arc.

scene = codes.reshape(len(blocks), -1, codes.shape[1]).mean(axis=0)
points = TemporalEmbedding(n_components=2, rank_tol=1e-3).fit_transform(scene)
plot.trajectory(points)
