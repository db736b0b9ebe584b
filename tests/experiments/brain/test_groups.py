"""Groups: participants.tsv as it is read, and permutation tests against what must come out."""

import numpy as np
import pytest

from psmt.brain import state_dynamics
from psmt.data.readers.scans import Parcels
from psmt.errors import FrameSourceError
from psmt.experiments.brain.groups import MOTION, Participants, compare_groups, contrasts, person_measures
from psmt.experiments.brain.groups import read_participants as read
from psmt.experiments.brain.subjects import find_people, read_study

TABLE = "participant_id\tgroup\tage\tsex\nsub-01\tpatient\t30\tF\nsub-02\tcontrol\t41\tM\nsub-03\tcontrol\t25\tF\n"
NAMES = ["sub-01_task-rest", "02", "sub-03"]


@pytest.fixture
def table(tmp_path):
    (tmp_path / "participants.tsv").write_text(TABLE)
    return tmp_path / "participants.tsv"


def given(**changes):
    return {"group": "group", "covariates": None, "motion": None} | changes


def test_people_are_found_by_their_ids_and_usual_covariates_are_taken(table):
    found = read(table, NAMES, **given(motion=np.array([0.1, 0.2, 0.3])))
    assert list(found.groups) == ["patient", "control", "control"]
    assert {name: own.tolist() for name, own in found.covariates.items()} == {
        "age": [30, 41, 25],
        "sex": [0, 1, 0],
        MOTION: [0.1, 0.2, 0.3],
    }
    assert set(read(table, NAMES, **given(covariates=["sex"])).covariates) == {"sex"}
    assert list(read(table, NAMES, **given(group="sex")).groups) == ["F", "M", "F"]


@pytest.mark.parametrize(
    "text, names, changes, why",
    [
        (TABLE, ["sub-09"], {}, "no participant_id for sub-09"),
        (TABLE, NAMES, {"group": "site"}, "no column 'site'; it has participant_id, group"),
        (TABLE, NAMES, {"covariates": ["iq"]}, "no column 'iq'"),
        (TABLE, ["sub-01_run-1", "sub-01_run-2"], {}, "several scans"),
        (TABLE.replace("41", "n/a"), NAMES, {}, "no age for 02"),
        (TABLE.replace("30", "old"), NAMES, {}, "age in .* has texts of 3 kinds"),
        (TABLE.replace("patient", "n/a"), NAMES, {}, "no group for sub-01"),
    ],
)
def test_what_a_table_lacks_is_named(table, text, names, changes, why):
    table.write_text(text)
    with pytest.raises(FrameSourceError, match=why):
        read(table, names, **given(**changes))


def test_a_planted_difference_is_found_and_a_covariate_explains_its_own():
    rng = np.random.default_rng(0)
    group, age = np.arange(24) % 2 * 1.0, rng.standard_normal(24)
    values = rng.standard_normal((24, 6))
    values[:, 2] += 2.5 * group
    values[:, 4] += 10 * (age + group)  # differs by age alone once the groups have different ages
    values[:, 5] = 1.0
    found = compare_groups(values=values, effect=group[:, None], covariates=age[:, None], seed=0, n_permutations=499)
    assert found["p_corrected"][2] <= 0.01
    assert np.isnan(found["p_corrected"][5])
    assert np.all(found["p_corrected"][:5] >= found["p"][:5])
    older = age + group
    values[:, 4] = 10 * older + rng.standard_normal(24)
    how = {"values": values, "effect": group[:, None], "seed": 0, "n_permutations": 499}
    assert compare_groups(**how, covariates=older[:, None])["p"][4] > 0.05
    assert compare_groups(**how, covariates=np.zeros((24, 0)))["p"][2] <= 0.01


def test_the_statistic_is_that_of_a_regression():
    from scipy.stats import f_oneway

    rng = np.random.default_rng(1)
    values, label = rng.standard_normal((15, 3)), np.arange(15) % 3
    effect = np.array([label == 1, label == 2], dtype=float).T
    found = compare_groups(values=values, effect=effect, covariates=np.zeros((15, 0)), seed=0, n_permutations=999)
    expected = f_oneway(*(values[label == k] for k in range(3)))
    assert np.allclose(found["statistic"], expected.statistic)
    assert np.allclose(found["p"], expected.pvalue, atol=0.05)


def test_false_alarms_are_as_rare_as_they_should_be():
    rng, alarms = np.random.default_rng(2), 0
    group = (np.arange(16) % 2 * 1.0)[:, None]
    for seed in range(100):
        own = {"effect": group, "covariates": np.zeros((16, 0)), "seed": seed, "n_permutations": 99}
        alarms += np.nanmin(compare_groups(values=rng.standard_normal((16, 10)), **own)["p_corrected"]) <= 0.05
    assert alarms <= 11


def test_an_effect_that_covariates_determine_is_refused():
    group = (np.arange(8) % 2 * 1.0)[:, None]
    with pytest.raises(FrameSourceError, match="too few to separate"):
        compare_groups(values=np.eye(8), effect=group, covariates=group, seed=0)


def test_measures_are_those_of_each_person():
    people = [state_dynamics([np.array(own)], 2) for own in ([0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1])]
    found = person_measures(people, np.array([0.5, 0.6]), 2.0)
    values = dict(zip(found.labels, found.values.T.tolist(), strict=True))
    assert values["occupancy", 1, 0] == [0.5, 0.5]
    assert values["dwell_time", 1, 0] == [3.0, 6.0]
    assert values["transition", 1, 2] == [1.0, 1.0]
    assert values["prediction_error", 0, 0] == [0.5, 0.6]


def test_motion_is_a_check_of_its_own():
    motion = np.array([0.1, 0.2, 0.4, 0.3])
    found = contrasts(Participants(["a", "b", "a", "b"], {"age": np.arange(4.0), MOTION: motion}, motion))
    assert found["group"]["covariates"].shape == (4, 2)
    assert found["motion"]["covariates"].shape == (4, 1)
    assert not contrasts(Participants())


def test_simulated_patients_are_a_group_if_they_differ():
    spec = "builtin:bold?subjects=4&frames=40&regions=8&effect=3"
    assert list(read_study(find_people([spec]), Parcels()).participants.groups) == ["control", "patient"] * 2
    assert not read_study(find_people([spec.replace("effect=3", "effect=1")]), Parcels()).participants.groups
