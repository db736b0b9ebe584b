"""Online dictionary learning (Mairal et al., 2010) as one would write it on a blackboard."""

import numpy as np


def statistics(batches, kept):
    """Faded sums of ``a a'`` and ``a x'`` of batches of (codes, samples); `kept` is the share of the past."""
    code_code, code_sample = 0.0, 0.0
    for (codes, samples), share in zip(batches, kept, strict=True):
        code_code = share * code_code + codes.T @ codes
        code_sample = share * code_sample + codes.T @ samples
    return code_code, code_sample


def sweep(code_code, code_sample, atoms, order):
    """Atoms after each one of `order` has been set, in turn, to the unit-norm one that is best given the others."""
    atoms = atoms.copy()
    for j in order:
        others = np.delete(np.arange(len(atoms)), j)
        wish = code_sample[j] - code_code[j, others] @ atoms[others]
        atoms[j] = wish / np.linalg.norm(wish)
    return atoms
