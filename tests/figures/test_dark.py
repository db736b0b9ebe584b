"""A figure on a dark page: ink and paper change places, pictures do not."""

from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from psmt.figures import png
from psmt.figures.dark import ON_PAPER, PAPER, darkened, swap_lightness

DPI = 100


def drawn():
    """A figure with a picture in its left half, black above and white below, and a blue line in its right half."""
    figure = Figure(figsize=(4, 2))
    left = figure.add_axes((0, 0, 0.5, 1))
    left.imshow(np.array([[0.0], [1.0]]), cmap="gray", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    left.set_axis_off()
    right = figure.add_axes((0.55, 0.1, 0.4, 0.8))
    right.plot([0, 1], [0.5, 0.5], color="#0072b2", linewidth=12)
    right.set_axis_off()
    return png(figure, dpi=DPI)


def pixels(file):
    return np.asarray(Image.open(BytesIO(file)).convert("RGB")).astype(int)


def test_paper_turns_dark_and_pictures_stay():
    light = drawn()
    dark = pixels(darkened(light))
    assert dark.shape == (200, 400, 3)
    np.testing.assert_array_equal(pixels(light)[:, :195], dark[:, :195])  # black stays black, white stays white
    assert (dark[20, 100] == 0).all() and (dark[180, 100] == 255).all()
    np.testing.assert_array_equal(dark[5, 390], PAPER)


@pytest.mark.parametrize(
    ("image", "is_picture"),
    [
        ({"X": [[0.0]], "cmap": "gray"}, True),
        ({"X": [[[1.0, 1.0, 1.0]]]}, True),
        ({"X": [[[1.0, 1.0, 1.0]]], "gid": ON_PAPER}, False),
        ({"X": [[0.0]], "cmap": "RdBu_r"}, False),
        ({"X": [[0.0]], "cmap": "Greys"}, False),
    ],
)
def test_a_table_in_colours_is_no_picture(image, is_picture):
    figure = Figure(figsize=(1, 1))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(image.pop("X"), vmin=-1 if image.get("cmap") == "RdBu_r" else 0, vmax=1, **image)
    axes.set_axis_off()
    light = png(figure, dpi=DPI)
    kept = pixels(light)[50, 50]
    np.testing.assert_allclose(pixels(darkened(light))[50, 50], kept if is_picture else PAPER, atol=8)


def test_lines_keep_their_hue_and_stand_out():
    red, green, blue = pixels(darkened(drawn()))[100, 300]
    assert red < green < blue  # still blue
    assert blue - PAPER[2] > 120


def test_a_photograph_is_left_alone():
    file = BytesIO()
    Image.new("L", (4, 4), 200).save(file, format="png")
    assert darkened(file.getvalue()) is None
    assert darkened(b"no picture") is None


def test_light_and_dark_are_exchanged():
    greys = np.repeat(np.linspace(0, 255, 9)[:, None], 3, axis=1)
    swapped = swap_lightness(greys)
    assert (np.diff(swapped, axis=0) < 0).all()
    assert swapped.min() >= min(PAPER) - 1 and swapped.max() <= 255
