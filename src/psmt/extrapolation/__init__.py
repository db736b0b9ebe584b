"""Step 6 of the paper: rules that predict the next point b of the embedding.

`Linear`, the paper's rule, continues in a straight line. `Hold` repeats the last point. `Gain` repeats a learned
fraction of the last step. `Phase` rotates the point in planes of the embedding. `Dynamics` learns a transition matrix
of points and frames. A new rule is one file in this folder with a subclass of `Extrapolation`.
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
