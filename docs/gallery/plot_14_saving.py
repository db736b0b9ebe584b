"""
How do I save a model and continue later?
=========================================

``save`` writes arrays and JSON, never a pickle. The loaded model makes identical predictions, to the last bit, and
continues to learn, also on another machine.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from psmt import PSMT, datasets, plot

data = datasets.load_glide(420, speed=0.8, patch_size=10)
model = PSMT(n_atoms=48, window=240, extrapolation="dynamics", random_state=0).fit(data.X[:400])

with TemporaryDirectory() as folder:
    model.save(Path(folder) / "leaves.psmt")
    loaded = PSMT.load(Path(folder) / "leaves.psmt")
    plot.save(plot.atoms(loaded, shape=data.picture_shape), Path(folder) / "atoms.pdf")  # or .svg, or .png
    print([file.name for file in sorted(Path(folder).iterdir())])

# %%
# Both models receive the same frames and make the same predictions.

for x in data.X[400:410]:
    model.update(x)
    loaded.update(x)
print("the same to the last bit:", np.array_equal(model.predict(5), loaded.predict(5)))

# %%
plot.prediction(loaded, data.X[410:420], shape=data.picture_shape)
