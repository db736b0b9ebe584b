"""From files to people: what is read, what is left out, and what is refused with a sentence."""

import os

import numpy as np
import pytest

from psmt.data.readers.scans import Parcels, find_scans, read_scan
from psmt.errors import FrameSourceError, NotEnoughFramesError
from psmt.experiments.brain.settings import BrainSettings
from psmt.experiments.brain.subjects import find_people, read_study

RNG = np.random.default_rng(0)


def study(*specs, **parcels):
    return read_study(find_people([str(spec) for spec in specs]), Parcels(**parcels))


def table(path, values, tr=None):
    if path.suffix == ".npz":
        np.savez(path, series=values, **({} if tr is None else {"tr": tr}))
    else:
        np.save(path, values)
    return path


# Tables


def test_tables_with_their_tr(tmp_path):
    files = [table(tmp_path / f"p{k}.npz", RNG.standard_normal((50 + k, 5)), tr=0.72) for k in range(2)]
    found = study(*files)
    assert found.tr == 0.72
    assert found.lengths == [50, 51]
    assert found.names == ["p0", "p1"]
    assert found.remarks == ()


def test_a_missing_tr_is_reported_and_can_be_given(tmp_path):
    path = table(tmp_path / "p.npy", RNG.standard_normal((50, 5)))
    assert "no TR is known" in study(path).remarks[0]
    assert study(path, tr=2.0).tr == 2.0


@pytest.mark.parametrize("tr", ["two", 1j, b"2", np.datetime64("2020-01-01"), True])
def test_a_tr_that_is_not_a_number_is_refused_by_the_name_of_its_file(tmp_path, tr):
    path = table(tmp_path / "p.npz", RNG.standard_normal((50, 5)), tr=np.array(tr))
    with pytest.raises(FrameSourceError, match=r"p.npz: tr is .*, not a number of seconds; give --tr SECONDS"):
        study(path)
    assert study(path, tr=2.0).tr == 2.0


def test_a_tr_that_cannot_be_read_is_refused_by_the_name_of_its_file(tmp_path):
    path = tmp_path / "p.npz"
    np.savez(path, series=RNG.standard_normal((50, 5)), tr=np.array(None, dtype=object))
    with pytest.raises(FrameSourceError, match=r"the TR in .*p.npz cannot be read: tr holds Python objects"):
        study(path)


def test_two_regions_of_one_name_are_refused(tmp_path):
    path = tmp_path / "p.csv"
    for name in ("left", ""):
        path.write_text(f"{name},right,{name}\n" + "1,2,3\n4,5,7\n" * 20)
        with pytest.raises(FrameSourceError, match=rf"two columns called '{name}'; give each region a name of its own"):
            study(path)


def test_nobody_is_in_a_study_twice_and_everybody_has_a_name(tmp_path):
    paths = [tmp_path / one / "same" / "p.npy" for one in "ab"]
    for path in paths:
        path.parent.mkdir(parents=True)
        table(path, RNG.standard_normal((50, 5)))
    assert [name for name, _ in find_people(list(map(str, paths))).files] == ["same_p_1", "same_p_2"]
    with pytest.raises(FrameSourceError, match=r"p.npy is given twice; give each person once"):
        find_people([str(paths[0]), str(paths[1]), str(paths[0])])
    assert len(find_people(["builtin:bold?subjects=2"]).files) == 2


def test_one_missing_tr_among_others_and_two_trs_are_refused(tmp_path):
    one = table(tmp_path / "one.npz", RNG.standard_normal((50, 5)), tr=0.72)
    other = table(tmp_path / "other.npy", RNG.standard_normal((50, 5)))
    with pytest.raises(FrameSourceError, match=r"other has no TR, but one has 0.72 s; give --tr"):
        study(one, other)
    third = table(tmp_path / "third.npz", RNG.standard_normal((50, 5)), tr=2.0)
    with pytest.raises(FrameSourceError, match=r"third has a TR of 2 s, but one of 0.72 s"):
        study(one, third)


def test_a_constant_region_is_left_out_in_all_and_reported(tmp_path):
    values = RNG.standard_normal((50, 5)) + 9_500
    values[:, 2] = 7.0
    files = [table(tmp_path / "a.npz", values, 2.0), table(tmp_path / "b.npz", RNG.standard_normal((50, 5)), 2.0)]
    found = study(*files)
    assert found.regions == ("region 1", "region 2", "region 4", "region 5")
    assert all(own.shape == (50, 4) for own in found.series)
    assert found.remarks == ("region 3 never changes in a: left out in all",)


def test_a_dead_scan_is_refused(tmp_path):
    with pytest.raises(FrameSourceError, match="5 of 5 regions never change"):
        study(table(tmp_path / "a.npz", np.ones((50, 5)), 2.0))


def test_a_single_region_is_refused(tmp_path):
    with pytest.raises(FrameSourceError, match=r"1 region .* at least two"):
        study(table(tmp_path / "a.npz", RNG.standard_normal((50, 1)), 2.0))


def test_series_of_different_regions_are_refused(tmp_path):
    files = [table(tmp_path / f"{n}.npz", RNG.standard_normal((50, n)), 2.0) for n in (5, 6)]
    with pytest.raises(FrameSourceError, match="6 has 6 regions, but 5 has 5"):
        study(*files)


def test_one_that_is_shorter_than_the_window_is_named():
    with pytest.raises(NotEnoughFramesError, match="p2 has 100 volumes, but two windows of window=96 need 108"):
        BrainSettings().check_lengths(["p1", "p2"], [400, 100])


def test_more_states_than_half_a_person_has_volumes_are_refused():
    with pytest.raises(NotEnoughFramesError, match=r"b has 40 volumes.* fewer than --states 21; use --states 20 or"):
        BrainSettings(window=16, n_states=21).check_lengths(["a", "b"], [300, 40])
    BrainSettings(window=16, n_states=20).check_lengths(["a", "b"], [300, 40])


def test_files_that_are_not_there_are_named(tmp_path):
    with pytest.raises(FrameSourceError, match=r"nobody.npz does not exist"):
        find_people([str(tmp_path / "nobody.npz")])


def test_simulated_people_know_the_truth():
    found = study("builtin:bold?subjects=2&frames=40")
    assert found.tr == 2.0
    assert [truth.shape for truth in found.truths] == [(2, 40), (2, 40)]  # in the signal, and in the hidden chain


# Scans


@pytest.fixture
def nibabel():
    pytest.importorskip("nilearn")
    return pytest.importorskip("nibabel")


def scan(nibabel, path, tr=2.0, nan=False, n=40):
    """A scan of 6 x 6 x 6 voxels with four labels, each with a course of its own, and their atlas."""
    labels = np.zeros((6, 6, 6))
    for k in range(4):
        labels[1 + 2 * (k // 2) : 3 + 2 * (k // 2), 1 + 2 * (k % 2) : 3 + 2 * (k % 2), 1:5] = k + 1
    rng = np.random.default_rng(0)
    courses = rng.standard_normal((n, 4))
    data = 1_000 + 0.1 * rng.standard_normal((6, 6, 6, n))
    for k in range(4):
        data[labels == k + 1] += courses[:, k]
    if nan:
        data[labels == 4] = np.nan
        data[1, 1, 1, 5] = np.nan
    image = nibabel.Nifti1Image(data.astype(np.float32), np.diag([3.0, 3, 3, 1]))
    image.header.set_zooms((3, 3, 3, tr))
    image.header.set_xyzt_units("mm", "sec")
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(image, path)
    atlas = path.parent / "atlas.nii.gz"
    nibabel.save(nibabel.Nifti1Image(labels.astype(np.int16), np.diag([3.0, 3, 3, 1])), atlas)
    return path, atlas, courses


def correlation(a, b):
    return np.corrcoef(a, b)[0, 1]


def test_labels_of_an_atlas(nibabel, tmp_path):
    path, atlas, courses = scan(nibabel, tmp_path / "sub.nii.gz")
    found = study(path, atlas=atlas)
    assert found.tr == 2.0
    assert found.regions == ("region 1", "region 2", "region 3", "region 4")
    assert found.names == ["sub"]
    for k in range(4):
        assert correlation(found.series[0][:, k], courses[:, k]) > 0.99


def test_maps_of_an_atlas_and_voxels_of_a_mask(nibabel, tmp_path):
    path, atlas, courses = scan(nibabel, tmp_path / "sub.nii.gz")
    labels = np.asanyarray(nibabel.load(atlas).dataobj)
    maps = np.stack([(labels == k + 1).astype(np.float32) for k in range(4)], axis=-1)
    nibabel.save(nibabel.Nifti1Image(maps, np.diag([3.0, 3, 3, 1])), tmp_path / "maps.nii.gz")
    found = study(path, atlas=tmp_path / "maps.nii.gz")
    assert found.regions[0] == "map 1"
    assert correlation(found.series[0][:, 2], courses[:, 2]) > 0.99
    nibabel.save(nibabel.Nifti1Image((labels == 2).astype(np.int8), np.diag([3.0, 3, 3, 1])), tmp_path / "mask.nii.gz")
    voxels = study(path, mask=tmp_path / "mask.nii.gz")
    assert len(voxels.regions) == int((labels == 2).sum())


def test_nan_voxels_and_regions_without_voxels_are_reported(nibabel, tmp_path):
    path, atlas, courses = scan(nibabel, tmp_path / "sub.nii.gz", nan=True)
    found = study(path, atlas=atlas)
    assert found.regions == ("region 1", "region 2", "region 3")
    assert any("voxels are not finite" in remark for remark in found.remarks)
    assert any("no voxels in 1 regions of the atlas (region 4)" in remark for remark in found.remarks)
    # One voxel of region 1 is left out; the others go on as they were.
    assert correlation(found.series[0][:, 0], courses[:, 0]) > 0.99


def test_nan_voxels_of_a_mask_stay_in_place_and_are_reported(nibabel, tmp_path):
    path, *_ = scan(nibabel, tmp_path / "sub.nii.gz", nan=True)
    image = nibabel.load(path)
    nibabel.save(nibabel.Nifti1Image(np.ones(image.shape[:3], np.int8), image.affine), tmp_path / "mask.nii.gz")
    found = read_scan(path, Parcels(mask=tmp_path / "mask.nii.gz"))  # so that all people have the same voxels
    lost = int((~np.isfinite(image.get_fdata()).all(axis=3)).sum())
    assert found.remarks == (f"sub.nii.gz: {lost} voxels are not finite and count as 0",)
    assert len(found.regions) == 6**3
    assert (found.values == 0).all(axis=0).sum() == lost - 1  # one of them is finite in most volumes


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((4, 4, 4, 9), np.nan, np.float32), "has no voxel that is finite"),
        (np.ones((4, 4, 4, 9), [("R", "u1"), ("G", "u1"), ("B", "u1")]), "a scan holds real numbers"),
        (np.ones((4, 4, 4, 9), np.complex64), "holds complex64; a scan holds real numbers"),
    ],
    ids=["nan", "colours", "complex"],
)
def test_a_scan_without_numbers_is_refused(nibabel, tmp_path, values, message):
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / "sub.nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.ones((4, 4, 4), np.int8), np.eye(4)), tmp_path / "mask.nii.gz")
    with pytest.raises(FrameSourceError, match=message):
        read_scan(tmp_path / "sub.nii.gz", Parcels(mask=tmp_path / "mask.nii.gz"))


def test_a_scan_whose_values_overflow_is_refused(nibabel, tmp_path):
    path, atlas, _ = scan(nibabel, tmp_path / "sub.nii.gz", tr=2.0)
    image = nibabel.load(path)
    huge = np.full(image.shape, 3e38) * np.sign(np.random.default_rng(0).standard_normal(image.shape))
    nibabel.save(nibabel.Nifti1Image(huge.astype(np.float32), image.affine), tmp_path / "huge.nii.gz")
    with pytest.raises(FrameSourceError, match=r"values up to 3e\+38, which overflow"):
        study(tmp_path / "huge.nii.gz", atlas=atlas, tr=2.0, low_pass=0.1)


def test_confounds_of_a_table_are_removed(nibabel, tmp_path):
    path, atlas, courses = scan(nibabel, tmp_path / "sub.nii.gz")
    lines = ["a\tb", *(f"{value if t else 'n/a'}\t{t}" for t, value in enumerate(courses[:, 1]))]
    (tmp_path / "confounds.tsv").write_text("\n".join(lines))
    found = study(path, atlas=atlas, confounds=str(tmp_path / "confounds.tsv"))
    assert abs(correlation(found.series[0][:, 1], courses[:, 1])) < 0.5
    assert correlation(found.series[0][:, 0], courses[:, 0]) > 0.9
    with pytest.raises(FrameSourceError, match="is neither a table nor a strategy; strategies are simple"):
        study(path, atlas=atlas, confounds="everything")


def test_a_scan_without_tr_cannot_be_filtered(nibabel, tmp_path):
    path, atlas, _ = scan(nibabel, tmp_path / "sub.nii.gz", tr=0.0)
    with pytest.raises(FrameSourceError, match=r"no TR .* a filter in Hz needs it"):
        study(path, atlas=atlas, low_pass=0.1)
    assert "no TR is known" in study(path, atlas=atlas).remarks[-1]
    smooth = study(path, atlas=atlas, tr=2.0, low_pass=0.1).series[0]
    assert np.diff(smooth, axis=0).std() < 0.6 * np.diff(study(path, atlas=atlas).series[0], axis=0).std()


def test_files_that_are_not_scans_are_named(nibabel, tmp_path):
    broken = tmp_path / "broken.nii.gz"
    broken.write_bytes(b"nothing")
    with pytest.raises(FrameSourceError, match="cannot be read as NIfTI"):
        study(broken)
    _, atlas, _ = scan(nibabel, tmp_path / "sub.nii.gz")
    with pytest.raises(FrameSourceError, match="a scan is 4-D"):
        study(atlas)
    os.mkfifo(tmp_path / "pipe.nii")
    with pytest.raises(FrameSourceError, match=r"pipe.nii is a pipe or a device"):
        study(tmp_path / "pipe.nii")


def test_a_scan_is_as_large_as_its_file_allows(nibabel, tmp_path):
    path, _, _ = scan(nibabel, tmp_path / "sub.nii")
    content = bytearray(path.read_bytes())
    content[42:50] = np.array([20_000, 20_000, 20_000, 3], np.int16).tobytes()  # dim[1:5] of the header
    (tmp_path / "vast.nii").write_bytes(content)
    with pytest.raises(FrameSourceError, match=r"vast.nii declares .*but the file cannot hold more than"):
        study(tmp_path / "vast.nii")
    with pytest.raises(FrameSourceError, match=r"vast.nii declares"):
        study(path, atlas=tmp_path / "vast.nii")


@pytest.mark.parametrize("part", ["atlas", "mask"])
def test_files_that_are_not_an_atlas_or_a_mask_are_named(nibabel, tmp_path, part):
    path, _, _ = scan(nibabel, tmp_path / "sub.nii")
    (tmp_path / "odd.nii").write_bytes(b"nothing")
    with pytest.raises(FrameSourceError, match=r"odd.nii cannot be read as NIfTI"):
        study(path, **{part: tmp_path / "odd.nii"})
    with pytest.raises(FrameSourceError, match=r"none.nii does not exist"):
        study(path, **{part: tmp_path / "none.nii"})


@pytest.mark.parametrize(
    "content, why", [(b"x,y\n", "has 0 lines"), (b"x\n1\n1,2\n", "cannot be read"), (b"\xff\xfe\0", ".")]
)
def test_confounds_that_are_not_a_table_are_named_in_one_line(nibabel, tmp_path, content, why):
    path, atlas, _ = scan(nibabel, tmp_path / "sub.nii")
    (tmp_path / "odd.csv").write_bytes(content)
    with pytest.raises(FrameSourceError, match=f"confounds .*odd.csv.*{why}") as raised:
        study(path, atlas=atlas, confounds=str(tmp_path / "odd.csv"))
    assert "\n" not in str(raised.value)


def test_a_bids_folder_gives_people_and_confounds(nibabel, tmp_path):
    names = ["trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z"]
    names = [name + end for name in names for end in ("", "_derivative1", "_power2", "_derivative1_power2")]
    names += ["white_matter", "csf", "cosine00"]
    for person in ("01", "02"):
        stem = tmp_path / f"sub-{person}" / "func" / f"sub-{person}_task-rest"
        _, atlas, courses = scan(
            nibabel, stem.with_name(f"{stem.name}_space-MNI152NLin2009cAsym_desc-preproc_bold.nii.gz")
        )
        regressors = 1e-3 * np.random.default_rng(1).standard_normal((40, len(names)))
        regressors[:, names.index("csf")] = courses[:, 1]
        np.savetxt(
            stem.with_name(f"{stem.name}_desc-confounds_timeseries.tsv"),
            regressors,
            delimiter="\t",
            header="\t".join(names),
            comments="",
        )
        stem.with_name(f"{stem.name}_desc-confounds_timeseries.json").write_text("{}")
    assert list(find_scans(tmp_path)) == ["sub-01_task-rest", "sub-02_task-rest"]
    found = study(tmp_path, atlas=atlas)
    assert len(found.series) == 2
    # What the ventricles do is a confound, and is gone.
    assert abs(correlation(found.series[0][:, 1], courses[:, 1])) < 0.6
    with pytest.raises(FrameSourceError, match=r"holds no sub-\*"):
        find_people([str(tmp_path / "sub-01")])


def test_a_copy_with_another_ending_is_not_a_scan(tmp_path):
    (tmp_path / "sub-01/func").mkdir(parents=True)
    for ending in ("nii.gz", "nii.gz.bak", "nii.bak"):
        (tmp_path / f"sub-01/func/sub-01_space-MNI_task-{ending[-3:].strip('.')}_desc-preproc_bold.{ending}").touch()
    assert list(find_scans(tmp_path)) == ["sub-01_task-gz"]


@pytest.mark.parametrize("option", ["tr", "low_pass", "smoothing"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0])
def test_options_that_are_not_positive_numbers_are_named(option, value):
    with pytest.raises(FrameSourceError, match=f"{option}={value}"):
        Parcels(**{option: value})
