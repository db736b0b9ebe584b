"""States against a known truth, and against plain counts."""

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from psmt.brain import fit_group, state_dynamics
from psmt.brain.layers import clean, join
from psmt.brain.states import choose_number, fit_states, score_states
from psmt.data import BoldSimulation
from psmt.experiments.brain.reproducibility import likelihood_gains, surrogate


def attracted(n=400, memory=0.6, seed=0, n_people=3):
    """Trajectories that three places draw, and the states that they show."""
    rng = np.random.default_rng(seed)
    places = np.array([[4.0, 0.0], [-4.0, 1.0], [0.0, -4.0]])
    people, truths = [], []
    for _ in range(n_people):
        states = np.repeat(rng.integers(3, size=n // 10), 10)
        y = np.zeros((n, 2))
        for t in range(1, n):
            y[t] = memory * y[t - 1] + (1 - memory) * places[states[t]] + 0.5 * rng.standard_normal(2)
        people.append(y)
        truths.append(states)
    return people, truths, places


def test_places_memory_and_chain_of_a_known_process_come_back():
    people, truths, places = attracted()
    model = fit_states(people, 3)
    assert model.memory == pytest.approx(0.6, abs=0.05)
    nearest = np.linalg.norm(model.places[:, None] - places, axis=2)
    assert nearest.min(axis=0).max() < 0.4
    states = np.concatenate([model.posterior(own)[0].argmax(axis=1) for own in people])
    assert adjusted_rand_score(np.concatenate(truths), states) > 0.9
    assert np.allclose(model.transitions.sum(axis=1), 1.0)


def test_forward_backward_gives_the_probabilities_of_all_paths():
    people, _, _ = attracted(n=60, n_people=1)
    model = fit_states(people, 2)
    points = people[0][:6]
    from itertools import pairwise, product

    from scipy.stats import multivariate_normal

    from psmt.brain.states import _before

    moved, targets = points - model.memory * _before(points), (1 - model.memory) * model.places
    own = zip(targets, model.covariances, strict=True)
    densities = np.array([multivariate_normal(mean, covariance).logpdf(moved) for mean, covariance in own]).T
    weights = np.zeros((6, 2))
    for path in product(range(2), repeat=6):
        logs = np.log(model.start[path[0]]) + sum(np.log(model.transitions[a, b]) for a, b in pairwise(path))
        weight = np.exp(logs + sum(densities[t, s] for t, s in enumerate(path)))
        for t, s in enumerate(path):
            weights[t, s] += weight
    assert np.allclose(model.posterior(points)[0], weights / weights.sum(axis=1, keepdims=True))
    assert model.score(points) == pytest.approx(np.log(weights[0].sum()))


def test_no_step_is_learned_across_people():
    flat = [np.random.default_rng(k).standard_normal((50, 2)) * 0.1 + 8.0 * k for k in range(2)]
    model = fit_states(flat, 2)
    # Each person stays in a state of their own: all that is known of leaving is the prior.
    assert np.diag(model.transitions).min() > 0.97


def chosen(people, candidates):
    """The number of states that is chosen among some."""
    return choose_number({n: score_states(**join(people), n_states=n, seed=0)["scores"] for n in candidates})


def test_the_number_of_states_is_found():
    people, _, _ = attracted(n_people=4)
    assert chosen(people, (2, 3, 4, 5)) == 3


def test_noise_gets_the_fewest_states():
    people = [np.random.default_rng(k).standard_normal((200, 3)) for k in range(4)]
    assert chosen(people, (2, 3, 4)) == 2


def test_states_predict_others_with_attractors_and_not_in_a_linear_process():
    people, _, _ = attracted(n_people=4)
    gained = np.mean(likelihood_gains(fit_states(people[:2], 3), people[:2], people[2:], seed=0))
    assert gained > 0.5
    wandering = [surrogate(own, np.random.default_rng(k)) for k, own in enumerate(people)]
    model = fit_states(wandering[:2], 3)
    assert np.mean(likelihood_gains(model, wandering[:2], wandering[2:], seed=0)) < 0.3 * gained
    # A single state gains nothing over itself.
    assert np.allclose(likelihood_gains(fit_states(people, 1), people, people, seed=0), 0.0, atol=1e-6)


def test_simulated_states_are_found_through_both_layers():
    scans = BoldSimulation(n_subjects=3, n_frames=300)
    model = fit_group([scans.subject(k).values for k in range(3)], tr=scans.tr, n_atoms=64, alpha=0.3, n_states=5)
    assert model.networks_.shape == (64, 60)
    truth = np.concatenate([scans.states(k) for k in range(3)])
    assert adjusted_rand_score(truth, np.concatenate([course.states for course in model.courses_])) > 0.75


def test_states_that_differ_only_in_covariance_are_found():
    scans = BoldSimulation(
        n_subjects=3, n_frames=400, n_regions=24, world="covariance", dwell=120.0, n_states=3, seed=7
    )
    model = fit_group([scans.subject(k).values for k in range(3)], tr=scans.tr, n_states=3)
    truth = np.concatenate([scans.states(k) for k in range(3)])
    assert adjusted_rand_score(truth, np.concatenate([course.states for course in model.courses_])) > 0.7
    assert np.abs(model.states_).max() < 0.6  # their mean activity is nearly the same


def test_drifts_go_and_what_switches_stays():
    time = np.arange(600)
    drift, wave = np.cos(np.pi * time / 600), np.sin(2 * np.pi * time / 15)
    left = clean(np.column_stack([5.0 * drift + wave, wave]) + 9_000.0, 2.0, 0.0025)
    assert np.abs(left[:, 0] - left[:, 1]).max() < 0.3
    assert np.allclose(left.std(axis=0), 1.0)


def test_drifts_are_those_of_a_regression_on_slow_cosines():
    values = np.random.default_rng(0).standard_normal((101, 3)) + 50.0
    cosines = np.cos(np.pi * np.arange(11) * (np.arange(101)[:, None] + 0.5) / 101)  # 2 * 101 * 2 s * 0.025 Hz = 10.1
    rest = values - cosines @ np.linalg.lstsq(cosines, values, rcond=None)[0]
    assert np.allclose(clean(values, 2.0, 0.025), rest / rest.std(axis=0))


def test_drifts_take_no_memory_with_the_square_of_the_length():
    values = np.random.default_rng(0).standard_normal((60_000, 2))
    tracemalloc.start()
    clean(values, 2.0, 0.0025)  # 600 slow cosines: 288 MB of them
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * values.nbytes


def test_dwell_times_and_transitions_are_counts():
    found = state_dynamics([np.array([0, 0, 1, 1, 1, 0]), np.array([1, 2, 2])], 4)
    assert found.occupancy.tolist() == pytest.approx([3 / 9, 4 / 9, 2 / 9, 0.0])
    assert found.dwell[:3].tolist() == [1.5, 2.0, 2.0]
    assert np.isnan(found.dwell[3])
    assert found.transitions[1].tolist() == [0.5, 0.0, 0.5, 0.0]
