"""Layer 1 against SPAMS and scikit-learn: codes, and dictionaries."""

from __future__ import annotations

import numpy as np
import spams
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.linear_model import LassoLars

from benchmarks.measure import ALPHA, THREADS, Row, agree, dictionary, medians, objective, once, patches, pinned
from psmt import SparseCoder
from psmt.coding.dictionary import first_atoms

ATOMS, EPOCHS = 512, 10
BATCH, SPAMS_BATCH = 256, 512
"""Our own default, and that of SPAMS, with which it is twice as fast as with ours."""

SUBSET = 200
"""Patches that scikit-learn's LassoLars codes; its time grows with their number, so the rest is estimated."""


def coding() -> list[Row]:
    """Code 10,000 patches in any order, and in film order."""
    film, atoms = patches(), dictionary(ATOMS)
    shuffled = film[np.random.default_rng(0).permutation(len(film))]
    coder = SparseCoder.from_dictionary(atoms, alpha=ALPHA)
    columns = np.asfortranarray(atoms.T)
    given = {"any order": shuffled, "film order": film}
    signals = {name: np.asfortranarray(samples.T) for name, samples in given.items()}

    def spams_codes(name: str) -> np.ndarray:
        return spams.lasso(signals[name], D=columns, lambda1=ALPHA, mode=2, pos=True, numThreads=THREADS)

    lars = LassoLars(alpha=ALPHA / film.shape[1], positive=True, fit_intercept=False, precompute=True, max_iter=10_000)
    with pinned():
        agreed = {
            name: agree(
                "objective",
                objective(samples, coder.transform(samples), atoms),
                objective(samples, spams_codes(name).T.toarray(), atoms),
                1e-6,
            )
            for name, samples in given.items()
        }
        times = medians(
            {
                "ours any order": lambda: coder.transform(shuffled),
                "SPAMS any order": lambda: spams_codes("any order"),
                "ours film order": lambda: coder.transform(film),
                "SPAMS film order": lambda: spams_codes("film order"),
            },
            repeats=7,
        )
        few = medians({"scikit-learn": lambda: lars.fit(atoms.T, shuffled[:SUBSET].T)})["scikit-learn"]
    agreed_lars = agree(
        "objective",
        objective(shuffled[:SUBSET], coder.transform(shuffled[:SUBSET]), atoms),
        objective(shuffled[:SUBSET], lars.coef_, atoms),
        1e-6,
    )
    work = f"code 10,000 patches, M={ATOMS}, any order"
    ours = times["ours any order"]
    estimate = few * len(film) / SUBSET
    return [
        Row(work, "SPAMS lasso", ours, times["SPAMS any order"], 2, agreed["any order"]),
        Row(work, f"scikit-learn LassoLars, from {SUBSET} patches", ours, estimate, 50, agreed_lars),
        Row(
            "the same in film order, warm starts",
            "SPAMS lasso",
            times["ours film order"],
            times["SPAMS film order"],
            4,
            agreed["film order"],
        ),
    ]


def learning() -> list[Row]:
    """Learn a dictionary until its objective is the one that SPAMS reaches in ten epochs."""
    film = patches()
    start = first_atoms(film, ATOMS, np.random.RandomState(0))
    signals, first = np.asfortranarray(film.T), np.asfortranarray(start.T)
    batches = EPOCHS * len(film) // SPAMS_BATCH
    options = {"lambda1": ALPHA, "mode": 2, "posAlpha": True, "batchsize": SPAMS_BATCH, "numThreads": THREADS}

    def spams_atoms() -> np.ndarray:
        return np.ascontiguousarray(spams.trainDL(signals, D=first, iter=batches, verbose=False, **options).T)

    def our_atoms(epochs: int) -> np.ndarray:
        coder = SparseCoder(n_atoms=ATOMS, alpha=ALPHA, batch_size=BATCH, max_epochs=epochs, tol=0.0, random_state=0)
        return coder.fit(film).dictionary_

    def reached(atoms: np.ndarray) -> float:
        return objective(film, SparseCoder.from_dictionary(atoms, alpha=ALPHA).transform(film), atoms)

    with pinned():
        goal = reached(spams_atoms())
        epochs = EPOCHS // 2
        while (ours := reached(our_atoms(epochs))) > goal:
            epochs += 1
        times = medians({"ours": lambda: our_atoms(epochs), "SPAMS": spams_atoms}, rehearsed=True)

        # scikit-learn runs the same algorithm with coordinate descent in place of LARS (which it refuses for positive
        # codes), so it needs at least as many epochs as we do; three batches tell what one costs.
        peer = MiniBatchDictionaryLearning(
            ATOMS,
            alpha=ALPHA,
            batch_size=BATCH,
            dict_init=start,
            fit_algorithm="cd",
            positive_code=True,
            n_jobs=THREADS,
        )
        batch = once(lambda: [peer.partial_fit(film[i : i + BATCH]) for i in range(0, 3 * BATCH, BATCH)]) / 3
    work = f"dictionary M={ATOMS} of 10,000 patches, to the objective of SPAMS after {EPOCHS} epochs"
    same = f"objective {ours:.3f} after {epochs} epochs, SPAMS {goal:.3f}"
    return [
        Row(work, "SPAMS trainDL", times["ours"], times["SPAMS"], 2, same),
        Row(
            work,
            f"scikit-learn MiniBatchDictionaryLearning, {epochs} epochs, from 3 batches",
            times["ours"],
            batch * epochs * len(film) / BATCH,
            20,
            "objective not checked",
        ),
    ]
