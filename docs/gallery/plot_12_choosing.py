"""
How many components, and which sparsity penalty?
================================================

With ``'auto'``, a model chooses the dimension f of its embedding and the sparsity (L1) penalty lambda of step 7 by
predicting the end of its past, with a dictionary that has not seen it. The scores are kept in ``choice_``.
"""

from psmt import PSMT, datasets, plot

data = datasets.load_glide(1_000, speed=0.4, noise=0.1, patch_size=12)
model = PSMT(n_atoms=128, window=600, random_state=0).fit(data.X)
print(f"chosen: f = {model.n_components_}, lambda = {model.lam_:g}, from {len(model.choice_.scores)} pairs")

# %%
# Where the curves are flat the choice matters little. Where they rise, the penalty is too large and suppresses the next
# code.

plot.sweep(model)
