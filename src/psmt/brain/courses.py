"""What a group model finds in each person (`Course`), and statistics of brain states."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from psmt.types import Array, Ints

FEWEST_VOLUMES = 10
"""Smallest number of volumes in a state from which correlations of regions are computed."""


class Course(NamedTuple):
    """One person's series, network activity, trajectory in the embedding, and states, according to a group model."""

    series: Array
    """(time, n_regions): the cleaned series, in standard deviations of each region."""
    codes: csr_array
    """(time, n_atoms): activity of the networks."""
    embedding: Array
    """(time, n_components): coordinates of the trajectory."""
    states: Ints
    """(time,): the state with the largest weight in each volume, see `StateModel.shown`. The first state is 0."""
    probabilities: Array
    """(time, n_states): probability that the person is in each state."""


class StateDynamics(NamedTuple):
    """Occupancy, dwell times and transitions of the states of one person or of a group."""

    occupancy: Array
    """(n_states,): share of the volumes that are in each state."""
    dwell: Array
    """(n_states,): mean number of successive volumes in each state. It is NaN for a state that is never visited."""
    visits: Array
    """(n_states,): number of times that each state begins, at the first volume of a person or later."""
    transitions: Array
    """(n_states, n_states): of all changes from the state of the row, the share that leads to the state of the column.
    A row is NaN if its state is never left."""


def state_dynamics(people: Sequence[Ints], n_states: int) -> StateDynamics:
    """Return occupancy, dwell times and transitions, pooled over people. Each person is an array of states (time,).

    >>> state_dynamics([np.array([0, 0, 1, 1, 1, 0])], 2).dwell.tolist()
    [1.5, 3.0]
    """
    volumes, visits, moves = np.zeros(n_states), np.zeros(n_states), np.zeros((n_states, n_states))
    for states in people:
        volumes += np.bincount(states, minlength=n_states)
        left = np.flatnonzero(np.diff(states))
        np.add.at(visits, states[np.concatenate([[0], left + 1])], 1)
        np.add.at(moves, (states[left], states[left + 1]), 1)
    n_left = moves.sum(axis=1, keepdims=True)
    return StateDynamics(
        occupancy=volumes / volumes.sum(),
        dwell=np.divide(volumes, visits, out=np.full(n_states, np.nan), where=visits > 0),
        visits=visits,
        transitions=np.divide(moves, n_left, out=np.full_like(moves, np.nan), where=n_left > 0),
    )


def state_means(courses: Sequence[Course], n_states: int) -> Array:
    """Return the mean volume (n_states, n_regions) of each state over all people, or 0 if the state never occurs."""
    sums, counts = np.zeros((n_states, courses[0].series.shape[1])), np.zeros(n_states)
    for course in courses:
        np.add.at(sums, course.states, course.series)
        counts += np.bincount(course.states, minlength=n_states)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def state_connectivity(courses: Sequence[Course], state: int) -> Array:
    """Return the correlations (n_regions, n_regions) between regions, over the volumes in a state, of all people.

    They are NaN for a state with fewer than `FEWEST_VOLUMES` volumes, and for a region that is constant in the state.
    The series of people are processed one by one, to save memory.
    """
    n_regions, n = courses[0].series.shape[1], 0
    total, products = np.zeros(n_regions), np.zeros((n_regions, n_regions))
    for course in courses:
        volumes = course.series[course.states == state]
        n += len(volumes)
        total += volumes.sum(axis=0)
        products += volumes.T @ volumes
    if n < FEWEST_VOLUMES:
        return np.full((n_regions, n_regions), np.nan)
    covariance = products / n - np.outer(total, total) / n**2
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.outer(deviation, deviation)
    return np.asarray(np.divide(covariance, scale, out=np.full_like(covariance, np.nan), where=scale > 1e-12))
