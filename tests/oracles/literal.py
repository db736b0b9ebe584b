"""Algorithm 1 of the paper, transcribed line by line: dense, explicit and slow.

Symbols are the paper's: the columns of `Phi` (N x M) are dictionary items, those of `A` (M x time) are codes.
"""

import numpy as np

from oracles.solvers import lars_codes, recover_code


def second_difference_operator(H, *, full):
    """D: the paper's H x H matrix, or its interior columns only."""
    D = np.eye(H) - 0.5 * np.eye(H, k=1) - 0.5 * np.eye(H, k=-1)
    return D if full else D[:, 1:-1]


def inverse_square_root(V, *, least):
    values, vectors = np.linalg.eigh(V)
    assert values[0] > least * values[-1], "the paper assumes that V has full rank"
    return vectors @ np.diag(values**-0.5) @ vectors.T


def embedding(A, f, *, centred, full, least=1e-6):
    """Step 5: P* = U' V^-1/2 with the f trailing eigenvectors U of Q; V has at least a fraction `least` everywhere."""
    H = A.shape[1]
    V = np.cov(A) if centred else A @ A.T / H
    D = second_difference_operator(H, full=full)
    root = inverse_square_root(V, least=least)
    Q = root @ A @ D @ D.T @ A.T @ root
    _, vectors = np.linalg.eigh(Q)
    return vectors[:, :f].T @ root


def algorithm_1(Phi, A, delayed, *, H, f, alpha, lam, centred=True, full=False, least=1e-6):
    """Predictions (K, N) of the frames after each of the delayed frames (K, N), and their codes (K, M).

    `A` (M x time) are the codes of the past over the dictionary `Phi`.
    """
    frames, codes = [], []
    for x_current in delayed:  # step 1
        a_current = lars_codes(x_current[None], Phi.T, alpha)[0]  # step 2
        A = np.column_stack([A, a_current])  # step 3
        window = A[:, -H:]  # step 4
        P = embedding(window, f, centred=centred, full=full, least=least)  # step 5
        beta = 2 * P @ window[:, -1] - P @ window[:, -2]  # step 6
        a_future = recover_code(P, beta, lam)  # step 7
        frames.append(Phi @ a_future)  # step 8
        codes.append(a_future)
    return np.array(frames), np.array(codes)
