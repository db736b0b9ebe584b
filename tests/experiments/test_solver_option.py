"""`--solver sgd`: it reaches every experiment that embeds, and gives what the closed form gives."""

import numpy as np
import pytest

from conftest import wave
from psmt.cli.app import COMMANDS
from psmt.embedding.stochastic import check_solver
from psmt.experiments.coding_tasks import pack_codes
from psmt.experiments.embedding_tasks import round_trip
from psmt.experiments.phases import FilmPhase
from psmt.experiments.prediction.phase import predict_phase
from psmt.experiments.topology.run import _graph_options
from psmt.experiments.window_graphs import window_graph


def test_the_option_reaches_every_experiment_that_embeds():
    asked = COMMANDS["reproduce"].job({"solver": "sgd"}).settings()
    for name in ("sweep", "topology", "reconstruction", "prediction"):
        assert asked[name].solver == "sgd"
    assert {own.solver for own in COMMANDS["reproduce"].job({}).settings().values() if hasattr(own, "solver")} == {
        "closed"
    }


def test_a_gpu_has_no_descent():
    with pytest.raises(ValueError, match="solver='sgd' does not run on device='cuda'; use device='cpu'"):
        check_solver("sgd", device="cuda")
    check_solver("closed", device="cuda")


def test_windows_come_back_as_from_the_closed_form():
    rng = np.random.default_rng(0)
    codes = np.maximum(rng.standard_normal((150, 40)).cumsum(axis=0) * 0.2, 0.0)
    dictionary = rng.standard_normal((40, 9))
    closed, sgd = (
        round_trip(codes, dictionary, n_components=6, lam=0.05, solver=solver)(codes, codes)[0]
        for solver in ("closed", "sgd")
    )
    assert np.mean((closed - sgd) ** 2) < 0.01 * np.var(closed)


def test_the_graph_of_a_window_is_the_closed_forms():
    settings = COMMANDS["reproduce"].job({"n_atoms": 30, "window": 120, "n_components": 5}).settings()["topology"]
    codes = pack_codes(np.maximum(np.random.default_rng(0).standard_normal((120, 30)).cumsum(axis=0) * 0.2, 0.0))
    inputs = codes | _graph_options(settings, "cpu")
    closed, sgd = (window_graph(**inputs | {"solver": solver}) for solver in ("closed", "sgd"))
    assert len(closed["edges"])
    assert closed["edges"].tolist() == sgd["edges"].tolist()


def test_baselines_share_the_solver():
    result = predict_phase(
        wave(150, 10),
        FilmPhase("start", 130),
        horizon=2,
        n_atoms=16,
        window=60,
        n_components=4,
        alpha=0.1,
        lam=0.1,
        solver="sgd",
    )
    closed = predict_phase(
        wave(150, 10), FilmPhase("start", 130), horizon=2, n_atoms=16, window=60, n_components=4, alpha=0.1, lam=0.1
    )
    for method in ("psmt", "baseline1", "baseline2"):
        assert np.allclose(result.scores[method].predicted, closed.scores[method].predicted, atol=0.02)
