"""Step 6 of the paper: rules that predict the next point b of the embedding.

`Linear`, `Hold` and `Gain` add a multiple g of the last step to the last point, in each direction of the embedding. A
step is a point minus the point before it. `Linear`, the paper's straight line, has ``g = 1`` and `Hold` has ``g = 0``.
`Gain` learns one g per direction: the lag-one autocorrelation of its steps, shrunk towards zero. `Phase` rotates the
point in planes of the embedding, because moving pictures trace rotations rather than straight lines. `Dynamics` learns
a transition matrix of points and frames from the window.

Every module in this folder is imported. So a new rule is one file with a subclass of `Extrapolation`.
"""

from importlib import import_module
from pkgutil import iter_modules

from psmt.extrapolation.contract import EXTRAPOLATIONS, Extrapolation
from psmt.extrapolation.dynamics import Dynamics
from psmt.extrapolation.steps import Gain, Hold, Linear, Phase
from psmt.utils.constraints import choice

__all__ = ["EXTRAPOLATIONS", "Dynamics", "Extrapolation", "Gain", "Hold", "Linear", "Phase", "make_extrapolation"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

_ORDER = ("linear", "hold", "gain", "phase", "dynamics")
for _name in (*_ORDER, *sorted(EXTRAPOLATIONS.keys() - set(_ORDER))):
    EXTRAPOLATIONS[_name] = EXTRAPOLATIONS.pop(_name)


def make_extrapolation(name: str) -> Extrapolation:
    """Return a new extrapolation by its name: 'linear', 'hold', 'gain', 'phase' or 'dynamics'."""
    return EXTRAPOLATIONS[choice(*EXTRAPOLATIONS)("extrapolation", name)]()
