"""`psmt.brain`: what a group model finds in new people, and what comes back from its file."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from psmt import brain, datasets
from psmt.brain.states import choose_number
from psmt.data import BoldSimulation
from psmt.errors import FrameSourceError, ModelFileError, NotEnoughFramesError
from psmt.persistence import load_model

pytestmark = pytest.mark.slow

SCANS = BoldSimulation(n_subjects=5, n_frames=300, n_regions=30, n_states=3, noise=0.5, seed=4)
PEOPLE = [SCANS.subject(k).values for k in range(5)]


@pytest.fixture(scope="module")
def model():
    return brain.fit_group(PEOPLE[:4], tr=2.0, n_atoms=16, n_states=3)


def test_states_of_a_new_person_are_the_true_ones(model):
    before = {name: array.copy() for name, array in model.get_state().items()}
    (course,) = model.transform([PEOPLE[4]])
    assert adjusted_rand_score(SCANS.states(4), course.states) > 0.5
    assert np.allclose(course.probabilities.sum(axis=1), 1.0)
    # Nothing is learned from new people.
    assert all(np.array_equal(array, before[name]) for name, array in model.get_state().items())


def test_people_that_were_learned_from_have_the_same_courses_again(model):
    for learned, again in zip(model.courses_, model.transform(PEOPLE[:4]), strict=True):
        assert np.array_equal(learned.states, again.states)
        assert np.allclose(learned.embedding, again.embedding)


def test_patterns_and_connectivity_are_those_of_the_volumes_in_a_state(model):
    volumes = np.concatenate([course.series for course in model.courses_])
    states = np.concatenate([course.states for course in model.courses_])
    assert np.allclose(model.states_[1], volumes[states == 1].mean(axis=0))
    assert np.allclose(brain.state_connectivity(model.courses_, 1), np.corrcoef(volumes[states == 1].T))
    seldom = model.courses_[0]._replace(states=np.where(np.arange(300) < 9, 1, 0))
    assert np.isnan(brain.state_connectivity([seldom], 1)).all()


def test_the_number_of_states_can_be_chosen():
    model = brain.fit_group(PEOPLE, tr=2.0, n_atoms=16)
    assert sorted(model.scores_) == [2, 3, 4, 5, 6, 7, 8]
    assert model.n_states == choose_number(model.scores_) >= 3
    assert len(model.states_) == model.n_states


def test_a_file_gives_the_same_courses_and_has_no_people(model, tmp_path):
    model.save(tmp_path / "group.psmt")
    loaded = brain.GroupModel.load(tmp_path / "group.psmt")
    assert type(load_model(tmp_path / "group.psmt")) is brain.GroupModel
    assert loaded.regions == model.regions and loaded.tr == 2.0 and not loaded.courses_
    (one,), (other,) = model.transform([PEOPLE[4]]), loaded.transform([PEOPLE[4]])
    assert np.array_equal(one.states, other.states) and np.array_equal(one.embedding, other.embedding)


@pytest.mark.parametrize(
    "part, value, why",
    [
        ("chain.transitions", np.full((3, 3), 0.5), "do not add up to 1"),
        ("chain.covariances", -np.eye(6)[None].repeat(3, axis=0), "is not a covariance"),
        ("networks", np.zeros((16, 29)), "networks is float64"),
        ("chain.memory", np.array(2.0), "above 0.9"),
    ],
)
def test_a_file_that_is_not_a_model_is_refused(model, tmp_path, part, value, why):
    model.save(tmp_path / "group.psmt")
    with np.load(tmp_path / "group.psmt") as file:
        parts = dict(file)
    parts[part] = value
    np.savez(tmp_path / "odd.npz", **parts)
    with pytest.raises(ModelFileError, match=why):
        brain.GroupModel.load(tmp_path / "odd.npz")


def test_data_frames_have_names_and_a_single_array_is_one_person(model):
    frames = [pd.DataFrame(own, columns=[f"area {k}" for k in range(30)]) for own in PEOPLE[:2]]
    named = brain.fit_group(frames, tr=2.0, n_atoms=8, n_states=2)
    assert named.regions[0] == "area 0"
    assert len(named.transform(frames[0])) == 1
    assert len(model.transform(PEOPLE[0])) == 1
    with pytest.raises(FrameSourceError, match=r"30 regions \(area 0, ..\).* give the same regions"):
        model.transform(frames)


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(FrameSourceError, match="person 1 has 29 regions"):
        brain.fit_group([PEOPLE[0], PEOPLE[1][:, 1:]])
    with pytest.raises(NotEnoughFramesError, match="person 0 has 5 volumes; give at least 8"):
        brain.fit_group([PEOPLE[0][:5]])
    with pytest.raises(FrameSourceError, match="there are no people"):
        brain.fit_group([])
    with pytest.raises(ValueError, match="n_states=1 is too small"):
        brain.fit_group(PEOPLE, n_states=1)
    with pytest.raises(ValueError, match="tr=0 is out of range"):
        brain.fit_group(PEOPLE, tr=0)


def test_parts_can_be_computed_elsewhere(model):
    called = []

    def compute(name, function, inputs, stage):
        called.append(name)
        return [function(**own) for own in inputs]

    again = brain.fit_group(PEOPLE[:4], tr=2.0, n_atoms=16, n_states=3, compute=compute)
    assert called == ["networks", "codes", "states"]
    assert np.array_equal(again.networks_, model.networks_)


def test_headers_are_plain(model, tmp_path):
    model.save(tmp_path / "group.psmt")
    with np.load(tmp_path / "group.psmt") as file:
        header = json.loads(str(file["header"]))
    assert header["class"] == "GroupModel" and header["alpha"] == 0.05
    assert datasets.load_bold(20).feature_names[:2] == tuple(header["regions"][:2])
