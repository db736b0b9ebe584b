"""
When is a brain in which state?
===============================

Networks and states are learned from the simulated scans of four people. The model is then applied to a fifth person,
from whom nothing is learned. The simulation knows the true states.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from psmt import brain, datasets

scans = [datasets.load_bold(300, subject=k, n_regions=40, n_states=4, noise=0.5) for k in range(5)]
model = brain.fit_group([scan.X for scan in scans[:4]], tr=2.0, n_states=4)
print(model)

# %%
# The model has the networks and the states of the group: patterns of regions. ``transform`` returns the course of each
# person, with the state of each volume.

(course,) = model.transform([scans[4].X])
agreement = adjusted_rand_score(scans[4].truth, course.states)
print(f"adjusted Rand index with the true states of the new person: {agreement:.2f}")
dynamics = brain.state_dynamics([course.states], model.n_states)
print("occupancy:", dynamics.occupancy.round(2), " mean dwell time in s:", (2.0 * dynamics.dwell).round(1))

# %%
# The states are numbered by how often the group is in them, and the true states in any order. The two rows agree if
# their colours change at the same times.

figure, (top, middle, bottom) = plt.subplots(3, figsize=(7, 5.2), layout="constrained", height_ratios=[2, 1, 1.2])
limit = np.abs(model.states_).max()
image = top.imshow(model.states_, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit)
figure.colorbar(image, ax=top, label="mean activity")
top.set(title="States of the group", xlabel="region", ylabel="state")
both = np.stack([course.states, scans[4].truth])
middle.imshow(both, aspect="auto", cmap="tab10", interpolation="nearest", extent=(0, 600, 2, 0))
middle.set_yticks([0.5, 1.5], ["found", "true"])
middle.set(title="A new person")
bottom.plot(2.0 * np.arange(300), course.probabilities)
bottom.set(xlabel="time, s", ylabel="probability", xlim=(0, 600))

# %%
# ``model.save("group.psmt")`` writes the model to a file without the data of the four people. ``psmt brain --model
# group.psmt`` applies it to files on the command line.
