"""Step 6: where the embedded scene goes next.

Most strategies continue each direction of the embedding by a multiple of its last step, ``b + g * (b - b_before)``:
the paper's straight line has ``g = 1``, holding still has ``g = 0``, and `Gain` learns one ``g`` per direction: the
lag-one autocorrelation of its steps, shrunk by standard errors. `Phase` takes directions in pairs, as planes in which
the scene turns: motion makes pictures turn, not move in straight lines. They are the complex eigenpairs of the
antisymmetric part of the lagged covariance. `Dynamics`
learns a whole matrix from the window, over points and frames together.
"""

from psmt.extrapolation.contract import Extrapolation
from psmt.extrapolation.dynamics import Dynamics
from psmt.extrapolation.lines import Gain, Hold, Linear
from psmt.extrapolation.phase import Phase
from psmt.utils.validation import check_choice

__all__ = ["EXTRAPOLATIONS", "Dynamics", "Extrapolation", "Gain", "Hold", "Linear", "Phase", "make_extrapolation"]

EXTRAPOLATIONS: dict[str, type[Extrapolation]] = {cls.name: cls for cls in (Linear, Hold, Gain, Phase, Dynamics)}


def make_extrapolation(name: str) -> Extrapolation:
    """A fresh strategy by its name: 'linear', 'hold', 'gain', 'phase' or 'dynamics'."""
    return EXTRAPOLATIONS[check_choice("extrapolation", name, tuple(EXTRAPOLATIONS))]()
