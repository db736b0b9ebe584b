"""The whole experiment at a tiny size, and its verdicts on made-up results."""

import numpy as np
import pytest
from studies.locality.claims import locality_claims
from studies.locality.report import EXPERIMENT, locality_tables
from studies.locality.result import LocalityResult, Material
from studies.locality.run import locality
from studies.locality.settings import LocalityOptions, LocalitySettings

from made_up_series import wave
from psmt.cli.commands import of_experiment
from psmt.errors import NotEnoughFramesError
from psmt.experiments.options.parameters import make_departures
from psmt.pipeline.run import Run
from psmt.report import render

TINY = LocalitySettings(
    n_atoms=16, window=48, horizon=1, n_starts=3, n_components=4, budgets=(2,), sparsities=(0.03,), alpha=0.1, lam=0.1
)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return locality(wave(120, 10), TINY, Run(folder=tmp_path_factory.mktemp("locality")))


def test_every_method_has_a_row_for_every_start(done):
    rows = list(done.rows())
    methods = {"closed", "turned", "sgd", "early-2", "sparse-0.03", "copy", "copy_code", "mean"}
    assert {row.method for row in rows} == methods
    assert len(rows) == 3 * 3 * len(methods)
    for row in rows:
        assert np.isfinite(row.mse_vs_frame)
        if row.method in ("closed", "turned", "sgd", "early-2", "sparse-0.03"):
            assert 1 <= row.atoms_used <= 96
            assert np.isfinite(row.group_share) == (row.material != "film")


def test_the_closed_form_is_its_own_measure_and_descent_comes_to_it(done):
    for material in done.materials:
        assert np.allclose(material.values("turned", "mse"), material.values("closed", "mse"))
        assert (material.values("turned", "atoms") <= material.values("closed", "atoms") + 1e-9).all()
        rougher = material.values("sgd", "roughness") / material.values("closed", "roughness")
        assert (rougher < 1.01).all()
        assert (material.values("early-2", "roughness") > 1.2 * material.values("closed", "roughness")).all()


def test_a_sparsity_penalty_finds_places_and_stopping_early_loses_them(done):
    in_turn = next(material for material in done.materials if material.name == "times")
    closed, early, sparse = (in_turn.values(name, "group").mean() for name in ("closed", "early-2", "sparse-0.03"))
    assert early < closed < sparse
    assert sparse > 0.85


def test_files_and_tables(done):
    files = EXPERIMENT.written(done)
    assert files["locality.png"].startswith(b"\x89PNG")
    assert files["locality.csv"].decode().splitlines()[0].startswith("material,start,method,atoms_used,group_share")
    assert "Is the stochastic solution more local?" in render(EXPERIMENT.page(done, files)).decode()
    assert [len(table.rows) for table in locality_tables(done)] == [8, 8, 8]


def test_the_command_asks_for_what_the_library_does_by_itself():
    command = of_experiment("studies.locality")
    assert command.job({}).settings() == {"studies.locality": LocalitySettings()}
    given = {"n_atoms": 40, "n_starts": 5, "horizon": 3}
    assert command.job(given).settings()["studies.locality"] == LocalitySettings(**given, window=120)
    literal = command.job({"departures": make_departures(literal=True)}).settings()["studies.locality"].departures
    assert literal.half_stencils and literal.rank_tol == 0
    with pytest.raises(ValueError, match="use device='cpu'"):
        LocalityOptions(device="torch:cpu").check(())


def test_a_short_film_is_named():
    with pytest.raises(NotEnoughFramesError, match="has 52 frames, of which 4 come after window=48"):
        TINY.check(52)
    starts = TINY.starts(120)
    assert starts[0] == 48
    assert starts[-1] + TINY.horizon + 1 == 120


# Verdicts on results whose truth is known


def made(n=12, *, atoms=1.0, errors=1.0, group=1.0, missed=False):
    """Results in which early and sparse descent have the closed form's atoms, errors and share times these factors."""
    rng = np.random.default_rng(0)
    materials = []
    for name in ("places", "times", "film"):
        material = Material(name)
        for start in range(n):
            chance = np.exp(0.02 * rng.standard_normal(4))
            for solution in TINY.solutions:
                factors = (1.0, 1.0, 1.0) if solution in ("closed", "sgd") else (atoms, errors, group)
                result = {
                    "mse": np.array([0.3 * factors[1] * chance[0]]),
                    "mse_code": np.array([0.2]),
                    "roughness": np.array([1.0]),
                    "atoms": np.array([20 * factors[0] * (1 if solution == "closed" else chance[1])]),
                    "frames": np.array([0.3]),
                    "missed": np.array([missed and solution == "sgd"]),
                    "turned_atoms": np.array([8.0]),
                    "copy": np.array([0.25]),
                    "copy_code": np.array([0.26]),
                    "mean": np.array([1.0]),
                }
                if name != "film":
                    result["group"] = np.array([0.4 * factors[2] * (1 if solution == "closed" else chance[2])])
                material.add(start, solution, {key: np.asarray(value, dtype=float) for key, value in result.items()})
        materials.append(material)
    return LocalityResult(settings=TINY, n_frames=120, materials=tuple(materials))


def outcomes(result):
    return {claim.key: claim.as_measured.verdict for claim in locality_claims(result)}


def test_more_local_and_better_holds():
    found = outcomes(made(atoms=0.3, errors=0.5, group=2.0))
    assert set(found.values()) == {"yes"}


def test_less_local_and_worse_does_not_hold():
    found = outcomes(made(atoms=2.0, errors=1.5, group=0.5))
    assert found.pop("locality_converged") == "yes"
    assert set(found.values()) == {"no"}


def test_fewer_atoms_that_lie_in_more_places_are_not_more_local():
    found = outcomes(made(atoms=0.5, group=0.5))
    assert found["locality_early"] == found["locality_sparse"] == "no"


def test_a_tie_and_too_few_starts_are_inconclusive():
    found = outcomes(made())
    assert found["locality_early"] == found["locality_sparse_predicts"] == "inconclusive"
    assert outcomes(made(n=2, atoms=0.3, errors=0.5, group=2.0))["locality_sparse"] == "inconclusive"


def test_a_warning_means_that_descent_has_not_converged():
    assert outcomes(made(missed=True))["locality_converged"] == "no"
