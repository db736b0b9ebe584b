"""Dynamic networks and states of a group of brains, in Python.

`fit_group` learns a `GroupModel`, with the networks and the states of a group, from the series of some people.
`GroupModel.transform` returns a `Course` for each person, known or new. It says when the person was in which state.
``psmt brain`` uses the same functions, and adds comparisons and a report.

>>> from psmt import brain, datasets
>>> people = [datasets.load_bold(120, subject=k, n_regions=12, n_states=3).X for k in range(3)]
>>> model = brain.fit_group(people[:2], tr=2.0, n_atoms=8, n_states=3)
>>> model.networks_.shape, model.states_.shape
((8, 12), (3, 12))
>>> (course,) = model.transform([people[2]])
>>> course.states.shape, course.probabilities.shape
((120,), (120, 3))
>>> brain.state_dynamics([course.states], n_states=3).occupancy.shape
(3,)
"""

from psmt.brain.courses import Course, StateDynamics, state_connectivity, state_dynamics, state_means
from psmt.brain.model import GroupModel, fit_group
from psmt.brain.states import StateModel

__all__ = ["Course", "StateDynamics", "state_connectivity", "state_dynamics", "state_means"]
__all__ += ["GroupModel", "StateModel", "fit_group"]
