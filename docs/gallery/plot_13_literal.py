"""
How does the literal algorithm differ from the default?
=======================================================

psmt departs from the paper where its result is not determined by the window. Each departure is a parameter, and
`PSMT.literal` has none of them. The windows of this film are short, where the difference is large: in the literal
version directions without motion count as straight ones, and predictions have no bound.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, datasets
from psmt.evaluation import teacher_forced
from psmt.model.baselines import CopyLast, MeanFrame

X = datasets.load_glide(541, speed=0.5, noise=0.1, patch_size=10).X
size = {"n_atoms": 48, "window": 96, "n_components": 24, "lam": 0.01, "random_state": 0}
methods = {
    "to the letter": PSMT.literal(**size),
    "with departures": PSMT(**size),
    "copying": CopyLast(),
    "mean": MeanFrame(window=96),
}
scores = {name: teacher_forced(method.fit(X[:500]), X[500:], X[500:]).vs_frame for name, method in methods.items()}
# At half a pixel per frame with noise a straight line is a poor prediction: copying beats both.
print({name: round(float(score.mean()), 3) for name, score in scores.items()})

# %%
figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for name, score in scores.items():
    colour = {"copying": "black", "mean": "0.7"}.get(name)
    ax.plot(np.arange(1, len(score) + 1), score, label=f"{name} ({score.mean():.2f})", color=colour)
ax.set(yscale="log", xlabel="step", ylabel="MSE one step ahead", title="The paper to the letter, and with departures")
ax.yaxis.set_major_formatter("{x:g}")
ax.legend(frameon=False, title="mean", loc="upper left", bbox_to_anchor=(1, 1))
