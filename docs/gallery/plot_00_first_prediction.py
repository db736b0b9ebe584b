"""
How far does a prediction of the next patch go?
===============================================

A camera glides over leaves. `PSMT` has learned from 600 frames, and now says what the patch in the centre shows next;
copying the last patch says that nothing changes. Which of them is closer, frame by frame?
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, read_patches

X = read_patches("builtin:glide?frames=680&seed=3").values  # (time, 256)
model = PSMT(n_atoms=64, window=256, extrapolation="phase", random_state=0).fit(X[:600])

# %%
# Receive a frame, predict the next one. Nothing is learned from a frame before it was predicted.

predicted = np.array([model.update(x).predict() for x in X[600:-1]])
truth, copied = X[601:], X[600:-1]
ours, copying = (np.mean((guess - truth) ** 2, axis=1) for guess in (predicted, copied))
print(f"error / error of copying: {ours.mean() / copying.mean():.2f}")

# %%
# The frame on which copying failed most, with what was expected of it; below, all of them. An error of 1 is that of a
# grey patch.

worst = int(np.argmax(copying))
figure, panels = plt.subplot_mosaic("abc;ddd", figsize=(7.5, 5.0), layout="constrained")
pictures = {"a": ("last patch", copied), "b": ("predicted", predicted), "c": ("what came", truth)}
for name, (title, patches) in pictures.items():
    panels[name].imshow(patches[worst].reshape(16, 16), cmap="gray", vmin=-2.5, vmax=2.5)
    panels[name].set(title=title, xticks=[], yticks=[])
frames = np.arange(601, 601 + len(ours))
panels["d"].semilogy(frames, copying, color="0.55", label="copying")
panels["d"].semilogy(frames, ours, color="#0072b2", label="PSMT, phase")
panels["d"].axvline(frames[worst], color="0.8", linewidth=0.8)
panels["d"].set(xlabel="frame", ylabel="mean squared error")
panels["d"].legend(frameon=False)
plt.show()
