"""What fits into a film, the tasks of reconstruction and prediction, and the clock."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from psmt.cli.app import COMMANDS
from psmt.cli.work import fit_settings
from psmt.coding import SparseCoder
from psmt.data.patches import read_patches
from psmt.errors import NotEnoughFramesError
from psmt.evaluation import mse
from psmt.experiments.film_tasks import round_trip
from psmt.experiments.options.sources import workers_for
from psmt.experiments.phases import FilmPhase, least_error
from psmt.experiments.prediction.phase import predict_phase
from psmt.experiments.prediction.run import choose_phases, predict
from psmt.experiments.prediction.settings import PredictionSettings
from psmt.experiments.reconstruction.report import reconstruct
from psmt.experiments.reconstruction.settings import ReconstructionSettings
from psmt.pipeline.run import Run


def asked(**given):
    """Settings that `psmt reproduce` asks for."""
    return COMMANDS["reproduce"].job(given).settings()


PAPER, QUICK = asked(), asked(quick=True)


def make_plan(settings, n_frames):
    """Settings that fit by experiment, and the notes."""
    used, notes = fit_settings(settings, n_frames)
    return SimpleNamespace(**used, notes=notes)


# What fits


def test_the_papers_sizes_fit_into_the_papers_film():
    plan = make_plan(PAPER, 10_000)
    assert plan.sweep.n_atoms == (512, 1024, 2048)
    assert (plan.topology.n_atoms, plan.topology.window, plan.topology.overlap) == (2048, 6144, 63 / 64)
    assert plan.reconstruction.n_atoms == 512
    assert (plan.prediction.n_atoms, plan.prediction.window, plan.prediction.horizon) == (512, 1536, 30)
    assert plan.notes == {}


@pytest.mark.parametrize(
    ("n_frames", "sweep", "topology", "reconstruction", "prediction"),
    [
        (6240, (512, 1024, 2048), 2048, 512, 512),
        (6239, (512, 1024, 2048), 512, 512, 512),
        (3071, (128, 256, 512, 1024, 2048), 512, 512, 512),
        (1567, (128, 256, 512, 1024, 2048), 512, 512, 512),
        (1566, (128, 256, 512, 1024, 2048), 512, 512, 256),
        (977, (64, 128, 256, 512, 1024, 2048), 256, 512, 256),
        (512, (32, 64, 128, 512, 1024, 2048), 128, 256, 128),
        (120, (32, 512, 1024, 2048), 32, 64, None),
        (95, None, None, 64, None),
        (32, None, None, None, None),
    ],
)
def test_the_largest_size_that_fits_is_used(n_frames, sweep, topology, reconstruction, prediction):
    plan = make_plan(PAPER, n_frames)
    found = [getattr(plan, name) for name in ("sweep", "topology", "reconstruction", "prediction")]
    assert [None if part is None else part.n_atoms for part in found] == [sweep, topology, reconstruction, prediction]
    asked = [(512, 1024, 2048), 2048, 512, 512]
    changed = [None if part is None else part.n_atoms for part in found] != asked
    assert bool(plan.notes) == changed
    for note in plan.notes.values():
        assert f"{n_frames:,} frames" in note


def test_one_size_that_was_asked_for_stays_alone():
    plan = make_plan(QUICK | {"sweep": replace(PAPER["sweep"], n_atoms=(64,))}, 400)
    assert plan.sweep.n_atoms == (64,)
    assert "sweep" not in plan.notes


def test_a_start_outside_the_film_is_refused_not_shrunk():
    settings = PAPER | {"prediction": PredictionSettings(starts=(20,))}
    with pytest.raises(NotEnoughFramesError, match="use a start from 96"):
        make_plan(settings, 10_000)


@pytest.mark.parametrize(("atoms", "cpus", "workers"), [(2048, 64, 3), (2048, 2, 2), (512, 64, 11), (64, 4, 4)])
def test_workers_stay_below_four_gibibytes(atoms, cpus, workers):
    assert workers_for(atoms, cpus) == workers


# Tasks


def test_reconstruction_is_that_of_the_library(glide, tmp_path):
    settings = ReconstructionSettings(n_atoms=16, alpha=0.3, seed=2)
    errors = reconstruct(glide[:150], settings, Run(folder=tmp_path)).errors
    coder = SparseCoder(n_atoms=16, alpha=0.3, random_state=2).fit(glide[:150])
    codes = coder.transform(glide[:150])
    frames_of = round_trip(codes, coder.dictionary_, n_components=4, lam=0.1, centred=False)
    np.testing.assert_allclose(errors, mse(frames_of(codes, codes), glide[:150]), rtol=1e-6)


@pytest.mark.filterwarnings("error::psmt.errors.SeriesWarning")
def test_patches_of_a_short_film_are_not_taken_for_a_transposed_series(tmp_path):
    patches = read_patches("builtin:glide?frames=60&size=32", frame_size=32, patch_size=8).values
    sizes = {"n_atoms": 8, "window": 24, "horizon": 2, "n_components": 4, "alpha": 0.3, "lam": 0.1}
    settings = PredictionSettings(**sizes, starts=(40,), n_starts=1, n_null=0)
    assert len(predict(patches, settings, Run(folder=tmp_path)).starts) == 1


def test_predictions_come_back_from_their_cells_as_they_were(glide, tmp_path):
    given = {"n_atoms": 16, "window": 60, "horizon": 4, "n_components": 6, "alpha": 0.3, "lam": 0.1}
    settings = PredictionSettings(**given, starts=(90,), n_starts=1, n_null=0)
    phase = FilmPhase("start-90", 90)
    for _ in range(2):  # computed, then read
        (found,) = predict(glide, settings, Run(folder=tmp_path)).phases
        expected = predict_phase(glide, phase, **given, seed=0)
        assert (found.phase, found.n_components, found.lam) == (phase, 6, 0.1)
        for mode in ("scores", "rollouts"):
            rows, wanted = list(found.rows(mode)), list(expected.rows(mode))
            assert [row[:4] for row in rows] == [row[:4] for row in wanted]
            np.testing.assert_allclose([row[4:] for row in rows], [row[4:] for row in wanted], rtol=1e-7, atol=1e-12)
        np.testing.assert_array_equal(found.frames, glide[91:95])
    # Frames after the last one that is predicted have no part in it.
    changed = glide.copy()
    changed[95:] = 0.0
    before = set((tmp_path / "tasks").iterdir())
    predict(changed, settings, Run(folder=tmp_path))
    assert set((tmp_path / "tasks").iterdir()) == before


def test_phases_are_those_given_or_found():
    settings = PredictionSettings(n_atoms=4, window=10, horizon=2)
    assert choose_phases(replace(settings, starts=(12, 15, 12)), None) == [
        FilmPhase("start-12", 12),
        FilmPhase("start-15", 15),
    ]
    errors = np.ones(40)
    errors[20:23], errors[30:33] = 0.0, 2.0
    film = replace(settings, search="film")
    assert choose_phases(film, errors) == [FilmPhase("calm", 20), FilmPhase("lively", 30)]
    assert choose_phases(settings, errors[:13]) == [FilmPhase("only", 10)]
    with pytest.raises(ValueError, match="give either"):
        choose_phases(settings, None)


def test_the_segment_of_least_error():
    errors = np.ones(100)
    errors[50:70] = 0.5
    assert least_error(errors, window=20) == (50, 70, 0.5)
    assert least_error(errors[:7], window=20) == (0, 7, 1.0)
