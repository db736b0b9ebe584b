"""
How do I try my own rule for the next point?
============================================

Step 6 of the algorithm predicts the next point of the embedding from the last two. A rule of your own is a class with a
name and one method. ``PSMT`` knows it as soon as the class exists, and so do all tools that take a model.
"""

import matplotlib.pyplot as plt
import numpy as np

from psmt import PSMT, datasets
from psmt.evaluation import teacher_forced
from psmt.extrapolation import Extrapolation
from psmt.model.baselines import CopyLast


class PartOfTheStep(Extrapolation):
    """Go on by a part of the last step: 0 holds the last point, 1 is the paper's straight line."""

    name = "part"
    part = 0.5

    def advance(self, previous, current, /):
        """Return the next point (n_components,)."""
        return current + self.part * (current - previous)


# %%
# How far should the rule go? We score it on 60 frames that the model did not learn from. To choose a part for use,
# score it on frames of the past instead.

X = datasets.load_glide(560, speed=1.5, patch_size=10).X
copying = teacher_forced(CopyLast().fit(X[:500]), X[500:], X[500:]).vs_frame.mean()
parts, errors = (0.0, 0.25, 0.5, 0.75, 1.0), []
for PartOfTheStep.part in parts:
    model = PSMT(n_atoms=64, window=240, n_components=24, alpha=0.3, lam=0.03, extrapolation="part", random_state=0)
    errors.append(teacher_forced(model.fit(X[:500]), X[500:], X[500:]).vs_frame.mean())
print(f"best part: {parts[int(np.argmin(errors))]:g}; error / copying: {np.min(errors) / copying:.2f}")

# %%
# A rule that should stay is one file in ``src/psmt/extrapolation/``. Then ``psmt predict --extrapolation part`` knows
# it too.

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(parts, np.array(errors) / copying, "o-", color="#009e73")
ax.axhline(1.0, color="black", linewidth=1, linestyle="--", label="copying")
ax.set(xlabel="part of the last step", ylabel="MSE ÷ copying", title="Error of our own rule", xticks=parts)
ax.legend(frameon=False)
