"""
Can whole frames be predicted?
==============================

`FramePSMT` predicts all pixels of a film: the last frame plus a blend of changes, whose weights are learned while the
film runs. Shapes that move straight on, whose motion is known, show what it can do.
"""

import numpy as np

from psmt import FramePSMT
from psmt.data import MovingShapes
from psmt.plot import prediction

film = MovingShapes(n_frames=130, speed=1.2, size=48, seed=2)
frames = np.stack(list(film))

# %%
# It predicts each frame before it receives it. Copying is what it must beat, from the first frames on.

model = FramePSMT().fit(frames[:60])
errors, copying = [], []
for t in range(60, 120):
    errors.append(np.mean((model.predict() - frames[t]) ** 2))
    copying.append(np.mean((frames[t - 1] - frames[t]) ** 2))
    model.update(frames[t])
print(f"MSE / copying over {len(errors)} frames: {np.mean(errors) / np.mean(copying):.2f}")

# %%
# Left to itself it goes on from its own predictions.

prediction(model, frames[120:126])
