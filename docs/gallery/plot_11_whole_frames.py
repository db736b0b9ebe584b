"""
Can whole frames be predicted?
==============================

`FramePredictor` predicts all pixels of a film: the last frame plus a weighted sum of changes, whose weights are learned
while the film runs. In the film here, a camera glides over fallen leaves.
"""

import numpy as np

from psmt import FramePredictor
from psmt.data import GlideFilm
from psmt.plot import prediction

film = GlideFilm(n_frames=130, speed=1.2, size=48, seed=2)
frames = np.stack(list(film))

# %%
# The model predicts each frame before it receives it. It must beat copying.

model = FramePredictor().fit(frames[:60])
errors, copying = [], []
for t in range(60, 120):
    errors.append(np.mean((model.predict() - frames[t]) ** 2))
    copying.append(np.mean((frames[t - 1] - frames[t]) ** 2))
    model.update(frames[t])
print(f"MSE / copying over {len(errors)} frames: {np.mean(errors) / np.mean(copying):.2f}")

# %%
# To predict several frames, the model continues from its own predictions.

prediction(model, frames[120:126])
