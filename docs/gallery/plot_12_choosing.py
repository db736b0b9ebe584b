"""
How many components, and which sparsity penalty?
================================================

With ``'auto'``, a model chooses the dimension f of its embedding and the sparsity (L1) penalty lambda of step 7 by
predicting the end of its past, with a dictionary that has not seen it. The scores are kept in ``choice_``.
"""

import matplotlib.pyplot as plt

from psmt import PSMT, datasets

data = datasets.load_glide(1_000, speed=0.4, noise=0.1, patch_size=12)
model = PSMT(n_atoms=128, window=600, random_state=0).fit(data.X)
print(f"chosen: f = {model.n_components_}, lambda = {model.lam_:g}, from {len(model.choice_.scores)} pairs")

# %%
# Where the curves are flat the choice matters little. Where they rise, the penalty is too large and suppresses the next
# code.

scores = model.choice_.scores  # the walk-forward MSE of each (f, lambda)
figure, ax = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for f in dict.fromkeys(f for f, _ in scores):
    lams = sorted(lam for size, lam in scores if size == f)
    ax.plot(lams, [scores[f, lam] for lam in lams], "o-", label="all directions" if f is None else f"f = {f}")
ax.set(xscale="log", xlabel="lambda", ylabel="walk-forward MSE", title="Error of each pair on the end of the past")
ax.xaxis.set_major_formatter("{x:g}")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
