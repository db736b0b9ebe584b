"""
How do I save a model and continue later?
=========================================

``save`` writes arrays and JSON, never a pickle. The loaded model makes identical predictions, to the last bit, and
continues to learn, also on another machine.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, datasets

X = datasets.load_glide(440, speed=0.8, patch_size=10).X
model = PSMT(n_atoms=48, window=240, extrapolation="dynamics", random_state=0).fit(X[:380])


def errors(model: PSMT, frames: np.ndarray) -> list[float]:
    """Predict each frame, receive it, and return the errors."""
    found = []
    for x in frames:
        found.append(float(np.mean((model.predict() - x) ** 2)))
        model.update(x)
    return found


# %%
# The model follows twenty frames, is saved, and follows forty more. The loaded model follows the same forty.

before = errors(model, X[380:400])
with TemporaryDirectory() as folder:
    model.save(Path(folder) / "leaves.psmt")
    loaded = PSMT.load(Path(folder) / "leaves.psmt")
    print(f"the file has {(Path(folder) / 'leaves.psmt').stat().st_size / 1024:.0f} kB")
after, later = errors(model, X[400:]), errors(loaded, X[400:])
print("the same to the last bit:", after == later)

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.plot(range(380, 440), before + after, color="#56b4e9", linewidth=5, label="the model")
ax.plot(range(400, 440), later, color="black", linewidth=1.2, label="saved, loaded, continued")
ax.axvline(400, color="0.5", linestyle="--", linewidth=1)
ax.set(xlabel="frame", ylabel="MSE one step ahead", title="A loaded model continues where the saved one was")
ax.legend(frameon=False)
