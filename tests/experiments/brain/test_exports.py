"""Files that leave the page: each is opened once in pandas or nilearn, and compared with the result that it shows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psmt.brain import GroupModel
from psmt.cli import main
from psmt.data import BoldSimulation
from psmt.data.contract import file_checksum
from psmt.errors import FrameSourceError
from psmt.experiments.brain.exports import COLUMNS, OTHER_FILES, TABLES
from psmt.experiments.brain.labels import Label, label_regions, match_networks

pytestmark = pytest.mark.usefixtures("blank_figures")
SMALL = ["--window", "24", "--atoms", "6", "--states", "2", "--workers", "1"]
NAMES = ["V1", "V2", "PCC", "mPFC"]


def scans(folder, n_people=2, n_frames=60):
    """Scans of 6 x 6 x 6 voxels with four regions of simulated people, the atlas, and a table of labels beside it."""
    nibabel = pytest.importorskip("nibabel")
    pytest.importorskip("nilearn")
    labels, affine = np.zeros((6, 6, 6), np.int16), np.diag([3.0, 3, 3, 1])
    for k, number in enumerate((2, 3, 5, 8)):
        labels[1 + 2 * (k // 2) : 3 + 2 * (k // 2), 1 + 2 * (k % 2) : 3 + 2 * (k % 2), 1:5] = number
    simulated = BoldSimulation(n_subjects=n_people, n_frames=n_frames, n_regions=4, n_networks=2, n_states=2)
    for person in range(n_people):
        data = np.full((*labels.shape, n_frames), 1_000.0, np.float32)
        for k, number in enumerate((2, 3, 5, 8)):
            data[labels == number] = simulated.subject(person).values[:, k]
        image = nibabel.Nifti1Image(data, affine)
        image.header.set_zooms((3, 3, 3, 2.0))
        image.header.set_xyzt_units("mm", "sec")
        nibabel.save(image, folder / f"sub-{person + 1}.nii.gz")
    nibabel.save(nibabel.Nifti1Image(labels, affine), folder / "atlas.nii.gz")
    table = pd.DataFrame({"index": [2, 3, 5, 8], "name": NAMES, "network": ["Vis", "Vis", "Default", "Default"]})
    table.to_csv(folder / "atlas.tsv", sep="\t", index=False)
    return [str(folder / f"sub-{person + 1}.nii.gz") for person in range(n_people)], labels


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    people, labels = scans(folder, n_people=6)
    rows = [f"sub-{k + 1}\t{'ab'[k % 2]}\t{0.1 * k}" for k in range(6)]
    (folder / "participants.tsv").write_text("\n".join(["participant_id\tgroup\tframewise_displacement", *rows]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("psmt.brain.states.MAX_STEPS", 3)
        atlas = ["--atlas", str(folder / "atlas.nii.gz")]
        assert main(["brain", *people[:2], *atlas, *SMALL, "--out", str(folder / "out")]) == 0
        new = ["--model", str(folder / "out" / "group.psmt"), "--window", "24", "--workers", "1"]
        assert main(["brain", people[1], *atlas, *new, "--out", str(folder / "new")]) == 0
        groups = ["--participants", str(folder / "participants.tsv"), "--out", str(folder / "groups")]
        assert main(["brain", *people, *atlas, *new, *groups]) == 0
    return folder, labels


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.file)
def test_each_table_opens_in_pandas_with_the_columns_that_are_documented(study, table):
    found = pd.read_csv(study[0] / ("groups" if table.file == "group_comparison.csv" else "out") / table.file)
    stems = [name.removesuffix("1..") for name in table.columns.split()]
    assert set(table.columns.split()) <= set(COLUMNS)
    assert all(any(column.startswith(stem) for stem in stems) for column in found.columns)
    assert all(any(column.startswith(stem) for column in found.columns) for stem in stems)
    assert len(found)


@pytest.mark.slow
def test_tables_agree_with_each_other(study):
    folder = study[0] / "out"
    model = GroupModel.load(folder / "group.psmt")
    networks = pd.read_csv(folder / "networks.csv").pivot(index="network", columns="region", values="weight")
    assert np.allclose(networks[NAMES], model.networks_)
    patterns = pd.read_csv(folder / "state_patterns.csv").pivot(index="state", columns="region", values="activity")
    assert np.allclose(patterns[NAMES], model.states_)
    trajectory, occupancy = pd.read_csv(folder / "trajectory.csv"), pd.read_csv(folder / "occupancy.csv")
    people = occupancy[occupancy.level == "person"].set_index(["subject", "state"])
    for (name, state), row in people.iterrows():
        own = trajectory[trajectory.subject == name].state.to_numpy()
        assert row.occupancy == pytest.approx((own == state).mean())
        starts = (own == state) & np.append(True, own[1:] != own[:-1])
        assert row.visits == starts.sum()
        assert np.isnan(row.dwell_time) if not starts.any() else row.dwell_time > 0
    transitions = pd.read_csv(folder / "transitions.csv")
    assert set(transitions.level) == {"person", "group"}
    left = (
        transitions.dropna(subset="share").groupby(["level", "from_state", transitions.subject.fillna("")]).share.sum()
    )
    assert np.allclose(left, 1.0)
    pairs = pd.read_csv(folder / "state_connectivity.csv")
    assert len(pairs) == 2 * 6 and pairs.correlation.abs().max() <= 1.0


@pytest.mark.slow
def test_groups_and_motion_are_compared_by_a_learned_model(study):
    found = pd.read_csv(study[0] / "groups" / "group_comparison.csv")
    assert set(found.contrast) == {"group", "motion"} and set(found.measure) == {
        "occupancy",
        "dwell_time",
        "transition",
    }
    occupancy = pd.read_csv(study[0] / "groups" / "occupancy.csv")
    one = occupancy[(occupancy.state == 1) & occupancy.subject.isin(["sub-1", "sub-3", "sub-5"])].occupancy.mean()
    row = found[(found.measure == "occupancy") & (found.state == 1) & (found.group == "a")].iloc[0]
    assert row["mean"] == pytest.approx(one)
    assert 0 < row.p <= row.p_corrected <= 1
    assert (
        "No difference between groups" in (study[0] / "groups" / "report.html").read_text() or row.p_corrected <= 0.05
    )


@pytest.mark.slow
def test_images_open_in_nilearn_with_a_volume_per_network_and_state(study):
    from nilearn.image import load_img
    from nilearn.maskers import NiftiLabelsMasker

    folder, labels = study
    model = GroupModel.load(folder / "out" / "group.psmt")
    for name, expected in (("networks", model.networks_), ("states", model.states_)):
        image = load_img(str(folder / "out" / f"{name}.nii.gz"))
        assert image.shape == (6, 6, 6, len(expected))
        assert np.array_equal(image.affine, np.diag([3.0, 3, 3, 1]))
        values = NiftiLabelsMasker(str(folder / "atlas.nii.gz"), standardize=None).fit_transform(image)
        assert np.allclose(values, expected, atol=1e-5)
        assert not image.get_fdata()[labels == 0].any()


@pytest.mark.slow
def test_networks_are_matched_with_those_of_the_labels(study):
    found = pd.read_csv(study[0] / "out" / "network_matches.csv")
    assert set(found.known_network) <= {"Vis", "Default"}
    assert found.share_of_activity.sum() == pytest.approx(1.0)
    assert match_networks(np.array([[1.0, 0.9, 0.0, 0.1]]), ["Vis", "Vis", "", "Default"])[0][0] == "Vis"
    assert match_networks(np.eye(2), ())[0][0] == match_networks(np.eye(2), ["", ""])[0][0] == ""


@pytest.mark.slow
def test_provenance_names_files_with_checksums_and_the_methods_say_what_was_done(study):
    folder, _ = study
    summary = json.loads((folder / "out" / "summary.json").read_text())
    origin = summary["provenance"]
    assert origin["inputs"][0]["sha256"] == file_checksum(folder / "sub-1.nii.gz")
    assert origin["atlas"]["sha256"] == file_checksum(folder / "atlas.nii.gz")
    assert origin["labels"]["file"].endswith("atlas.tsv")
    assert origin["settings"]["n_atoms"] == 6 and origin["settings"]["seed"] == 0 and origin["tr_seconds"] == 2.0
    assert {"psmt", "numpy", "nilearn"} <= set(origin["versions"])
    for part in ("regions of the atlas atlas.nii.gz", "has 6 networks", "2 states", "repetition time: 2 s", "seed 0"):
        assert part in summary["methods"]
    page = (folder / "out" / "report.html").read_text()
    assert summary["methods"] in page and origin["inputs"][1]["sha256"] in page


@pytest.mark.slow
def test_a_learned_model_is_applied_to_new_people_without_learning(study):
    folder, _ = study
    old, new = (pd.read_csv(folder / name / "trajectory.csv") for name in ("out", "new"))
    assert np.array_equal(old[old.subject == "sub-2"].state, new.state)
    assert (folder / "new" / "networks.csv").read_bytes() == (folder / "out" / "networks.csv").read_bytes()
    assert not (folder / "new" / "prediction.csv").exists()
    summary = json.loads((folder / "new" / "summary.json").read_text())
    assert summary["claims"] == {} and "prediction" not in summary
    assert "without learning from these people" in summary["methods"]
    assert summary["provenance"]["model"]["sha256"] == file_checksum(folder / "out" / "group.psmt")
    tasks = {path.name.split("-")[1] for path in (folder / "new" / "tasks").iterdir()}
    assert tasks == {"codes", "graphs"}


def refused(arguments, capsys):
    assert main(["brain", *map(str, arguments), "--workers", "1"]) == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.slow
def test_a_model_that_does_not_fit_is_refused_in_one_line(study, tmp_path, capsys):
    folder, _ = study
    model, out = ["--model", folder / "out" / "group.psmt"], ["--out", tmp_path / "out"]
    other = tmp_path / "other.csv"
    pd.DataFrame(np.random.default_rng(0).standard_normal((60, 4)), columns=[*NAMES[:3], "x"]).to_csv(
        other, index=False
    )
    assert "lack 1 of them, such as 'mPFC'" in refused([other, *model, *out, "--tr", 2], capsys)
    same = tmp_path / "same.csv"
    pd.read_csv(other).rename(columns={"x": "mPFC"}).to_csv(same, index=False)
    assert "a TR of 3.0 s, but the model was learned with 2.0 s" in refused([same, *model, *out, "--tr", 3], capsys)
    window = ["--tr", 2, "--window", 24]
    assert "--atoms 9 differs from 6 of the model" in refused([same, *model, *out, *window, "--atoms", 9], capsys)
    (tmp_path / "odd.psmt").write_bytes(b"nothing")
    assert "is not a saved model" in refused([same, "--model", tmp_path / "odd.psmt", *out], capsys)


@pytest.mark.slow
def test_the_description_and_the_page_list_all_files(study):
    described = json.loads((study[0] / "out" / "dataset_description.json").read_text())
    assert described["DatasetType"] == "derivative" and described["BIDSVersion"]
    files = {*described["Tables"], *described["Files"]}
    assert all((study[0] / "out" / name).exists() for name in files)
    page = Path(__file__).parents[3] / "docs" / "how-to" / "brain.md"
    text = page.read_text(encoding="utf-8")
    for table in TABLES:
        columns = "; ".join(f"`{name}`: {COLUMNS[name]}" for name in table.columns.split())
        assert f"| `{table.file}` | {table.row} | {columns} |\n" in text
    assert all(f"| `{name}` | | {what} |\n" in text for name, what in OTHER_FILES.items())


# Labels


def named(regions, path, text):
    path.write_text(text)
    return label_regions(regions, path)


def test_labels_of_a_text_and_of_schaefer(tmp_path):
    regions = ["region 2", "region 1"]
    assert named(regions, tmp_path / "names.txt", "left\n\nright\n") == [Label("right"), Label("left")]
    table = "Index,Name\n1,7Networks_LH_Vis_1\n2,7Networks_RH_Default_PFC_2\n"
    assert [label.network for label in named(regions, tmp_path / "names.csv", table)] == ["Default", "Vis"]


@pytest.mark.parametrize(
    "text, why",
    [
        ("index\n1\n", "cannot be read"),
        ("index,name\nx,a\n", "invalid literal"),
        ("index,name\n1\n", "texts in the column name"),
        ("", "cannot be read"),
        ("index,name\n1,a\n", "no name for 1 of 2 regions, such as region 2"),
        ("index,name\n1,a\n2,a\n", "call two regions 'a'"),
    ],
)
def test_labels_that_do_not_name_each_region_are_refused(tmp_path, text, why):
    with pytest.raises(FrameSourceError, match=why):
        named(["region 1", "region 2"], tmp_path / "labels.csv", text)


def test_labels_are_by_number(tmp_path):
    with pytest.raises(FrameSourceError, match="a region is called 'insula'"):
        named(["region 1", "insula"], tmp_path / "labels.txt", "a\nb\n")
    with pytest.raises(FrameSourceError, match=r"not a file|cannot be read"):
        label_regions(["region 1"], tmp_path)
