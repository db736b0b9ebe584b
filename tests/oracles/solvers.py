"""Optimisation problems of the paper, handed to solvers that other people wrote."""

import clarabel
import numpy as np
from scipy import sparse
from sklearn.linear_model import Lasso, LassoLars


def nonnegative_least_squares(P, b, price, *, bound=np.inf):
    """argmin ||P a - b||^2 + price'a over a >= 0 and sum(a) <= bound, by Clarabel.

    The residual is a variable of its own, so that no product P'P spoils the digits, and each a_j is measured in
    units of 1 / ||p_j||.
    """
    f, M = P.shape
    unit = np.linalg.norm(P, axis=0)
    unit[unit == 0] = 1.0
    quadratic = sparse.block_diag([sparse.csc_matrix((M, M)), 2 * sparse.eye(f)], format="csc")
    linear = np.concatenate([price / unit, np.zeros(f)])
    rows = [sparse.hstack([P / unit, -sparse.eye(f)]), sparse.hstack([-sparse.eye(M), sparse.csc_matrix((M, f))])]
    limits, cones = [b, np.zeros(M)], [clarabel.ZeroConeT(f), clarabel.NonnegativeConeT(M)]
    if np.isfinite(bound):
        rows.append(sparse.csc_matrix(np.concatenate([1 / unit, np.zeros(f)])))
        limits.append([bound])
        cones.append(clarabel.NonnegativeConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_step_fraction = 0.9  # shorter steps, which end closer to the optimum
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = 1e-10
    system = sparse.vstack(rows, format="csc")
    solution = clarabel.DefaultSolver(quadratic, linear, system, np.concatenate(limits), cones, settings).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved"), solution.status
    return np.array(solution.x)[:M] / unit


def recover_code(P, b, lam, *, bound=np.inf):
    """Step 7: argmin ||P a - b||^2 + lam z'a over a >= 0 (and sum(a) <= bound)."""
    return nonnegative_least_squares(P, b, lam * np.linalg.norm(P, axis=0), bound=bound)


def recover_change(P, shift, lam):
    """argmin ||P d - shift||^2 + lam z'|d| over signed d, as the difference of two non-negative halves."""
    rise, fall = np.split(recover_code(np.hstack([P, -P]), shift, lam), 2)
    return rise - fall


def lars_codes(X, dictionary, alpha):
    """Codes (n, n_atoms): argmin 1/2 ||x - a Phi||^2 + alpha sum(a) over a >= 0, by scikit-learn's LARS.

    Its positive path sometimes ends at a point that is not optimal (few atoms, small alpha); that is an error here.
    """
    lars = LassoLars(alpha=alpha / X.shape[1], positive=True, fit_intercept=False, max_iter=100_000)
    codes = np.array([lars.fit(dictionary.T, x).coef_.copy() for x in X])
    slope = (X - codes @ dictionary) @ dictionary.T - alpha
    assert slope.max() < 1e-8 * np.abs(X).max(), "scikit-learn's LARS did not reach the optimum"
    return codes


def descent_codes(X, dictionary, alpha):
    """The same codes by scikit-learn's coordinate descent."""
    descent = Lasso(alpha=alpha / X.shape[1], positive=True, fit_intercept=False, tol=1e-14, max_iter=100_000)
    return np.array([descent.fit(dictionary.T, x).coef_.copy() for x in X])
