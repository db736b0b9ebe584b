"""Series in files: the same numbers as in memory, for all that looks at a whole film."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from pipeline import example_tasks as example
from psmt import PSMT, SparseCoder, read_patches
from psmt.coding.dictionary import first_atoms
from psmt.data import patches
from psmt.evaluation.null_models import NULLS
from psmt.model.baselines import RidgeAutoregression
from psmt.pipeline import tasks as tasks_module
from psmt.pipeline.cache import hash_values
from psmt.pipeline.executors import SerialExecutor, open_executor
from psmt.pipeline.tasks import Task, run_tasks
from psmt.utils import disk_series
from psmt.utils.disk_series import DiskSeries, blocks, mean_of

FILM = "builtin:glide?frames=150&size=32&noise=0.05"


@pytest.fixture(scope="module")
def values():
    return read_patches(FILM, frame_size=32, patch_size=8).values


@pytest.fixture
def film(values, tmp_path, monkeypatch):
    """The same values in a file, of which 37 rows are read at a time."""
    monkeypatch.setattr(disk_series, "_BLOCK", 37 * 64 * 8)
    monkeypatch.setattr(tasks_module, "IN_MEMORY", 0)
    return DiskSeries.write(tmp_path / "film", [values[:70], values[70:]])


def test_it_is_indexed_as_an_array_is(film, values):
    assert (film.shape, film.ndim, len(film), film.nbytes) == (values.shape, 2, len(values), values.nbytes)
    np.testing.assert_array_equal(film, values)
    for key in (slice(10, 30), slice(-20, None), slice(30, 10), slice(0, 0)):
        assert isinstance(film[key], DiskSeries)
        np.testing.assert_array_equal(film[key], values[key])
    for key in (5, -1, [3, 1, -1], values[:, 0] > 0, slice(0, 9, 2), (slice(None), 3)):
        assert type(film[key]) is np.ndarray
        np.testing.assert_array_equal(film[key], values[key])
    assert type(film + 1) is np.ndarray and type(film.mean()) is np.float64
    np.testing.assert_array_equal(film[20:90][-30:][[0, 29]], values[[60, 89]])
    np.testing.assert_array_equal(np.concatenate(list(blocks(film))), values)
    assert len(list(blocks(film))) == 5


def test_its_file_is_deleted_with_the_last_array_that_uses_it(film, tmp_path):
    other = DiskSeries.write(tmp_path / "other", [np.ones((3, 2))])
    part, copy = other[1:], pickle.loads(pickle.dumps(other))
    del other
    np.testing.assert_array_equal(part, np.ones((2, 2)))
    np.testing.assert_array_equal(copy, np.ones((3, 2)))
    row = np.asarray(part)[1]
    del part
    assert (tmp_path / "other").exists() and row.tolist() == [1, 1]
    del row
    assert not (tmp_path / "other").exists()
    assert (tmp_path / "film").exists()


def test_a_failure_while_it_is_written_leaves_no_file(tmp_path):
    with pytest.raises(AttributeError):
        DiskSeries.write(tmp_path / "other", [np.ones((3, 2)), None])
    assert not (tmp_path / "other").exists()


def test_a_pickle_holds_the_name_of_the_file_and_the_rows(film, values):
    sent = pickle.dumps(film[20:90][5:])
    assert len(sent) < 1000
    received = pickle.loads(sent)
    np.testing.assert_array_equal(received, values[25:90])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(received[3:])), values[28:90])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(film.copy()))[[3, 1]], values[[3, 1]])


def test_a_file_that_was_cut_short_is_reported(film, tmp_path):
    with open(tmp_path / "film", "r+b") as file:
        file.truncate(1000)
    with pytest.raises(OSError, match="ends before its row 6"):
        film[[0, 5]]


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux says which pages are mapped")
def test_pages_that_were_read_are_released(tmp_path):
    film = DiskSeries.write(tmp_path / "long", (np.ones((1000, 512)) for _ in range(16)))

    def resident():
        """Bytes of the file that count as memory of this process."""
        _, _, lines = Path("/proc/self/smaps").read_text().partition(str(tmp_path / "long"))
        return 1024 * int(lines.split("Rss:")[1].split()[0])

    most = 0
    for block in blocks(film):
        assert block.sum() == block.size
        most = max(most, resident())
    assert disk_series._BLOCK <= most < 1.5 * disk_series._BLOCK < film.nbytes / 4


def test_a_task_has_a_copy_in_memory_of_a_small_one(film, monkeypatch):
    assert tasks_module._own_copy(film) is film
    monkeypatch.setattr(tasks_module, "IN_MEMORY", film.nbytes)
    assert type(tasks_module._own_copy(film)) is np.ndarray


def test_sums_and_keys_are_those_of_the_array(film, values):
    np.testing.assert_allclose(mean_of(film), values.mean(axis=0), atol=1e-15)
    assert hash_values({"x": film[3:90]}, where="") == hash_values({"x": values[3:90]}, where="")


def test_a_dictionary_is_learned_and_codes_are_made_alike(film, values):
    np.testing.assert_array_equal(*(first_atoms(x, 12, np.random.RandomState(0)) for x in (film, values)))
    coders = [SparseCoder(n_atoms=12, alpha=0.3, max_epochs=2, random_state=0).fit(x) for x in (film, values)]
    np.testing.assert_array_equal(coders[0].dictionary_, coders[1].dictionary_)
    assert coders[0].objective_ == coders[1].objective_
    np.testing.assert_array_equal(coders[0].transform(film), coders[1].transform(values))
    with pytest.raises(ValueError, match="64 features"):
        SparseCoder.from_dictionary(np.eye(5)).transform(film)


def test_models_learn_alike(film, values):
    given = {"n_atoms": 12, "window": 60, "alpha": 0.3, "random_state": 0}
    for model in (PSMT(**given), PSMT(extrapolation="gain", **given)):
        np.testing.assert_allclose(model.fit(film).predict(3), model.fit(values).predict(3), atol=1e-12)
    ridges = [RidgeAutoregression().fit(x) for x in (film, values)]
    assert ridges[0].penalty_ == ridges[1].penalty_
    np.testing.assert_allclose(ridges[0].predict(), ridges[1].predict(), atol=1e-10)


@pytest.mark.parametrize("null", NULLS)
def test_nulls_are_drawn_alike(film, values, null, tmp_path):
    drawn = NULLS[null](film, np.random.default_rng(3))
    assert isinstance(drawn, DiskSeries)
    np.testing.assert_array_equal(drawn, NULLS[null](values, np.random.default_rng(3)))
    assert len(list(tmp_path.iterdir())) == 2  # the film and the null


@pytest.mark.slow
def test_a_task_reads_it_in_another_process(film, values, tmp_path):
    tasks = [Task("rows", example.stored_mean, {"x": film[5:]})]
    with open_executor(2) as executor:
        (result,) = run_tasks(tasks, tmp_path, executor=executor)
    np.testing.assert_allclose(result["mean"], values[5:].mean(axis=0), atol=1e-15)
    # Its file is that of the array, wherever that was.
    assert Task("rows", example.stored_mean, {"x": values[5:]}).path(tmp_path).exists()


def test_a_cluster_is_sent_the_values(film, tmp_path, monkeypatch):
    sent = []

    class Elsewhere(SerialExecutor):
        shares_disk = False

        def submit(self, fn, /, *args, **kwargs):
            sent.append(type(args[1]["x"]))
            return super().submit(fn, *args, **kwargs)

    run_tasks([Task("rows", example.stored_mean, {"x": film})], tmp_path, executor=Elsewhere())
    assert sent == [np.ndarray]


def test_patches_are_stored_once_they_are_many(values, tmp_path, monkeypatch):
    asked = {"frame_size": 32, "patch_size": 8}
    assert isinstance(patches.read_values(FILM, **asked, store=tmp_path / "film"), np.ndarray)
    monkeypatch.setattr(patches, "IN_MEMORY", 40 * 64 * 8)
    monkeypatch.setattr(patches, "_PART", 50)
    film = patches.read_values(FILM, **asked, store=tmp_path / "film")
    assert isinstance(film, DiskSeries)
    np.testing.assert_array_equal(film, values)
    del film
    assert list(tmp_path.iterdir()) == []
