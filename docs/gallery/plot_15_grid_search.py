"""
How do I search parameters with scikit-learn?
=============================================

`PSMT` is an estimator with its own ``score``, so ``GridSearchCV`` accepts it. Time must not be shuffled: use
``TimeSeriesSplit``, whose scored frames come after the training frames.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from psmt import PSMT, datasets

X = datasets.load_bold(300, n_regions=20, noise=0.5).X
past, future = X[:240], X[240:]

# %%
# A fold is scored as in the paper: predict the next frame, then receive it. The score is minus the error divided by
# that of copying: above -1 is better than copying.

model = PSMT.for_series(n_atoms=24, random_state=0)
grid = {"extrapolation": ["dynamics", "hold"], "window": [60, 120]}
folds = TimeSeriesSplit(n_splits=2, test_size=30, gap=0)
search = GridSearchCV(model, grid, cv=folds).fit(past)
print("best:", search.best_params_)

# %%
# The chosen model has not seen the last 60 volumes. Only these give an unbiased score.

left = -search.best_estimator_.score(future)
print(f"MSE / copying of the chosen model on frames not used for the choice: {left:.2f}")

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
found = search.cv_results_
for name in grid["extrapolation"]:
    own = [i for i, parameters in enumerate(found["params"]) if parameters["extrapolation"] == name]
    windows = [found["params"][i]["window"] for i in own]
    ax.errorbar(windows, -found["mean_test_score"][own], found["std_test_score"][own], fmt="o-", capsize=3, label=name)
ax.axhline(1.0, color="black", linewidth=1, linestyle="--", label="copying")
ax.axhline(left, color="0.5", linewidth=1, label="chosen, on later frames")
ax.set(
    xlabel="window",
    ylabel="MSE ÷ copying, mean of folds",
    title="Walk-forward errors of the grid",
    xticks=grid["window"],
)
ax.set_ylim(bottom=0.8)
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
