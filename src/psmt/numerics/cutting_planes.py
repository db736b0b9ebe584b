"""A bound on what all coefficients together are worth: cutting planes in its multiplier."""

from __future__ import annotations

from collections.abc import Callable

from psmt.numerics.namespace import array_namespace
from psmt.types import Array

_MOST_PLANES = 200
"""Multipliers that are tried at the most; the duality gap ends the search long before."""


def bounded(
    free: Array,
    solve: Callable[[Array], Array],
    cost: Callable[[Array], Array],
    worth: Array,
    limit: Array,
    tolerance: Array,
) -> Array:
    """Coefficients (.., n) of least cost among those worth at most `limit` (..), given the free optimum (.., n).

    The bound's Lagrange multiplier is a penalty on worth itself. As it rises the worth falls, in places by leaps, so
    the solution is sought between coefficients that are worth too much (infeasible) and too little (feasible). Each
    solution draws a plane under the optimum, as a function of the multiplier; the planes cross at the next one.

    Parameters
    ----------
    free : array
        Optima without the bound. Those within it are returned as they are.
    solve : callable
        Optima (.., n) with multipliers (..) as penalties on worth.
    cost : callable
        Of coefficients (.., n), without any multiplier: (..).
    worth : array
        (n,) of a unit of each coefficient, >= 0.
    limit : array
        (..)
    tolerance : array
        Gap (..) to the dual bound at which to stop.
    """
    xp = array_namespace(free)
    found = infeasible = free
    feasible, lower = xp.zeros_like(free), cost(free)
    over = free @ worth > limit
    for _ in range(_MOST_PLANES):
        spent = feasible @ worth
        span = infeasible @ worth - spent
        share = (limit - spent) / xp.where(over, span, 1.0)
        mixed = feasible + share[..., None] * (infeasible - feasible)
        found = xp.where(over[..., None], mixed, found)
        over = over & (cost(mixed) - lower > tolerance)
        if not bool(xp.any(over)):
            break
        multiplier = xp.where(over, (cost(feasible) - cost(infeasible)) / xp.where(over, span, 1.0), 0.0)
        fresh = solve(multiplier)
        lower = xp.maximum(lower, cost(fresh) + multiplier * (fresh @ worth - limit))
        above = (fresh @ worth > limit)[..., None]
        infeasible, feasible = xp.where(above, fresh, infeasible), xp.where(above, feasible, fresh)
    return found
