"""Step 7 against SPAMS and quadratic programming: the same point, the same problem, the same optimum."""

from __future__ import annotations

import gurobipy
import numpy as np
import piqp
import proxsuite
import spams

from benchmarks.measure import ALPHA, Row, dictionary, medians, patches, pinned
from psmt import SparseCoder, TemporalEmbedding
from psmt.engines.numba.lasso import solve_one
from psmt.numerics.arrays import unit_rows

LAMBDA, GAP = 0.1, 1e-8
POINTS = 9


class Problem:
    """Step 7 for points that follow a window of the film: min 1/2||D'a - b||^2 + lam/2 sum(a) over a >= 0."""

    def __init__(self, n_atoms: int, n_components: int) -> None:
        window = 3 * n_atoms
        coder = SparseCoder.from_dictionary(dictionary(n_atoms), alpha=ALPHA)
        codes = coder.transform(patches()[: window + POINTS])
        embedding = TemporalEmbedding(n_components=n_components).fit(codes[:window]).embedding_
        columns, norms = unit_rows(np.ascontiguousarray(embedding.T))
        shown = norms > 0
        self.columns = np.ascontiguousarray(columns[shown])
        self.transposed = np.asfortranarray(self.columns.T)
        latest = codes[window - 2 :]
        self.points = (2 * latest[1:-1] - latest[:-2]) @ embedding.T
        self.starts = np.ascontiguousarray((latest[1:-1] * norms)[:, shown])
        self.size = f"M={n_atoms} f={n_components}"

    def ours(self, t: int) -> np.ndarray:
        return solve_one(self.columns, self.points[t], LAMBDA / 2, tol=GAP, start=self.starts[t]).coef

    def ours_cold(self, t: int) -> np.ndarray:
        return solve_one(self.columns, self.points[t], LAMBDA / 2, tol=GAP).coef

    def spams(self, t: int) -> np.ndarray:
        point = np.asfortranarray(self.points[t][:, None])
        found = spams.lasso(point, D=self.transposed, lambda1=LAMBDA / 2, mode=2, pos=True, numThreads=1)
        return found.toarray()[:, 0]

    def _quadratic(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        return self.columns @ self.transposed, LAMBDA / 2 - self.columns @ self.points[t]

    def piqp(self, t: int) -> np.ndarray:
        hessian, linear = self._quadratic(t)
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
        solver.setup(P=hessian, c=linear, x_l=np.zeros(len(linear)))
        solver.solve()
        return np.maximum(solver.result.x, 0.0)

    def proxqp(self, t: int) -> np.ndarray:
        hessian, linear = self._quadratic(t)
        found = proxsuite.proxqp.dense.solve(
            hessian, linear, C=np.eye(len(linear)), l=np.zeros(len(linear)), eps_abs=1e-9
        )
        return np.maximum(found.x, 0.0)

    def gurobi(self, t: int) -> np.ndarray:
        hessian, linear = self._quadratic(t)
        with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
            codes = model.addMVar(len(linear), lb=0.0)
            model.setObjective(0.5 * (codes @ hessian @ codes) + linear @ codes)
            model.params.BarConvTol = 1e-12
            model.params.Threads = 1
            model.optimize()
            return codes.X.copy()

    def gap(self, t: int, codes: np.ndarray) -> float:
        """Duality gap from its definition, relative to the objective at zero: one judge for all solvers."""
        point, price = self.points[t], LAMBDA / 2
        residual = point - codes @ self.columns
        scale = min(1.0, price / (self.columns @ residual).max())
        dual = 0.5 * point @ point - 0.5 * np.sum((point - scale * residual) ** 2)
        return float((0.5 * residual @ residual + price * codes.sum() - dual) / (0.5 * point @ point))

    def compare(self, peers: dict[str, float | None], points: int, passes: int = 1) -> list[Row]:
        """Rows against the named peers and their targets, over the first points, as often as it takes to be timed."""
        names = {"psmt": self.ours, "cold": self.ours_cold}
        names |= {name: getattr(self, name.lower()) for name in peers}
        worst = {name: max(self.gap(t, solve(t)) for t in range(points)) for name, solve in names.items()}
        assert max(worst["psmt"], worst["cold"]) <= GAP, worst
        order = list(range(points)) * passes
        times = medians({name: lambda solve=solve: [solve(t) for t in order] for name, solve in names.items()})
        return [
            Row(
                f"recovery {self.size}, {kind}",
                peer,
                times[ours] / len(order),
                times[peer] / len(order),
                target,
                f"gap {worst[ours]:.0e}, theirs {worst[peer]:.0e}",
            )
            for peer, target in peers.items()
            for kind, ours in (("from the last code", "psmt"), ("from nothing", "cold"))
        ]


def recovery() -> list[Row]:
    """Step 7 at two sizes, and at the one that Gurobi's free licence allows."""
    with pinned(1):
        small, large, tiny = Problem(512, 128), Problem(2048, 256), Problem(150, 64)
        return [
            *small.compare({"SPAMS": 3}, POINTS, passes=20),
            *small.compare({"PIQP": 10, "ProxQP": None}, 3),
            *large.compare({"SPAMS": 3}, POINTS),
            *large.compare({"PIQP": 10}, 1),
            *tiny.compare({"Gurobi": None}, POINTS),
        ]
