"""The page in a real browser: panels fill, controls work, no errors, and no requests to other machines."""

import itertools
import os
import re
import shutil

import numpy as np
import pytest
from benchmarks.cuts_film import CutsFilm

from live.conftest import SIDE, wait_for
from psmt.live.messages import Control
from psmt.live.serving import open_session, open_sessions
from psmt.video import FramePredictor

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("there is no chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")

PATIENCE = 60_000
"""Milliseconds: a busy machine is slow, but not wrong."""


@pytest.fixture(scope="module")
def browser():
    flags = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open pages; check at the end that there were no errors and no requests to other machines."""
    contexts, errors, asked = [], [], set()

    def open_page(address, *, width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda line: errors.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.add(request.url.split("/")[2]))
        page.on("websocket", lambda socket: asked.add(socket.url.split("/")[2]))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors
    assert {place.split(":")[0] for place in asked if place} <= {"127.0.0.1", "localhost", ""}


def contrast(page, name):
    """Standard deviation of the pixels of a canvas."""
    return page.evaluate(
        """(id) => {
          const canvas = document.getElementById(id);
          if (!canvas.width) return 0;
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let [sum, squares, n] = [0, 0, 0];
          for (let i = 0; i < data.length; i += 4) {
            const level = data[i] + data[i + 3];
            sum += level; squares += level * level; n += 1;
          }
          return Math.sqrt(squares / n - (sum / n) ** 2);
        }""",
        name,
    )


def eventually(page, condition):
    """Wait until a condition holds. The page's policy forbids what Playwright would wait with (eval)."""
    wait_for(condition, PATIENCE / 1000, lambda _: page.wait_for_timeout(30))


def reads(page, name, pattern):
    """Wait until the text of an element matches. Spaces that do not break are spaces."""
    text = lambda: page.text_content(f"#{name}").replace("\xa0", " ")  # noqa: E731
    eventually(page, lambda: re.search(pattern, text()))
    return text()


PANELS = [
    "now",
    "expected",
    "error",
    "ratio-curve",
    "surprise-curve",
    "seen-patch",
    "guess-patch",
    "trajectory",
    "graph",
]


def test_a_film_fills_the_panels_and_the_controls_work(serve_film, visit, film, tmp_path):
    server = serve_film(film, save_to=tmp_path / "model.npz")
    page = visit(server.address)
    reads(page, "ratio", r"^\d")
    reads(page, "machine-text", "Active atoms: [1-9]")
    page.wait_for_selector("#atoms li:not([hidden]) .bar")
    eventually(page, lambda: not [name for name in PANELS if contrast(page, name) < 1])
    assert "frames per second" in page.inner_text(".vitals") and "frames dropped" in page.inner_text(".vitals")

    # The cut in the film is listed, and can be shown again.
    page.wait_for_selector("#events button")
    page.click("#events button >> nth=0")
    assert "Back to live" in page.inner_text("#banner")
    page.keyboard.press("Escape")
    assert page.is_hidden("#banner")

    # Pause, step and play, by key and by button.
    page.keyboard.press("Space")
    reads(page, "source", "paused")
    before = server.sessions[0].snapshot.state["step"]
    page.click("#step")
    eventually(page, lambda: server.sessions[0].snapshot.state["step"] != before)
    assert server.sessions[0].snapshot.state["step"] == before + 1
    page.click("#pause")
    reads(page, "pause-text", "Pause")

    # The slider, by mouse and by keys.
    page.fill("#horizon", "4")
    reads(page, "horizon-text", r"^0\.16 s")
    eventually(page, lambda: server.sessions[0].snapshot.state["horizon"] == 4)
    page.locator("body").press("]")
    reads(page, "horizon-text", r"^0\.20 s")
    eventually(page, lambda: server.sessions[0].snapshot.state["horizon"] == 5)
    reads(page, "ahead", r"^0\.\d\d s ahead")

    # Saving writes the file given by --save.
    page.fill("#horizon", "1")
    page.click("#save")
    reads(page, "banner-text", "saved to model.npz")
    assert FramePredictor.load(tmp_path / "model.npz").predict().shape[:2] == (SIDE, SIDE)

    # Forgetting asks first, and starts again.
    page.click("#reset")
    page.click("#forget button[value=no]")
    page.keyboard.press("r")
    assert page.is_visible("#forget") and server.sessions[0].snapshot.state["epoch"] == 0
    page.keyboard.press("Escape")
    assert page.is_hidden("#forget")
    page.click("#reset")
    page.click("#forget-yes")
    eventually(page, lambda: server.sessions[0].snapshot.state["epoch"] == 1)
    reads(page, "lead", "Watching the first frames|too early|predicts")


def test_the_camera_of_the_browser(serve_film, visit):
    server = serve_film("camera", size=SIDE)
    page = visit(server.address, permissions=["camera"])
    reads(page, "lead", "Waiting for a camera")
    assert page.is_hidden("#square-now")
    page.click("#camera-here")
    reads(page, "ratio", r"^\d")
    assert contrast(page, "now") > 1
    assert page.is_hidden("#camera-here") and page.is_visible("#square-now")
    reads(page, "camera", "Stop this camera")
    # A second page shows the same camera, and cannot replace it with its own.
    other = visit(server.address)
    reads(other, "camera", "another page")
    assert other.is_disabled("#camera")
    eventually(other, lambda: contrast(other, "now") > 1)
    reads(page, "viewers", "2 pages")
    page.click("#camera")
    reads(page, "camera", "Use this camera")


FAINT_TEXTS = """() => {
  const levels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => levels(colour).slice(0, 3).map((level) => level / 255)
    .map((level) => level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4)
    .reduce((sum, level, k) => sum + level * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = (part) => {
    const colour = getComputedStyle(part).backgroundColor;
    return levels(colour).length < 4 ? colour : ground(part.parentElement);
  };
  return [...document.querySelectorAll("p, h1, h2, h3, label, dd, kbd, small, output, span, button:not(:disabled)")]
    .filter((part) => part.offsetWidth > 1 && [...part.childNodes].some((node) => node.nodeType === 3))
    .filter((part) => !part.closest("button:disabled, .waiting, .scale"))
    .filter((part) => {
      const [a, b] = [getComputedStyle(part).color, ground(part)].map(luminance).sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05) < 4.5;
    }).map((part) => part.textContent);
}"""
"""Texts whose contrast is below the minimum of WCAG, 4.5."""


@pytest.mark.slow
def test_the_page_fits_on_every_screen_in_both_schemes(serve, visit, film):
    server = serve(*open_sessions(film, CutsFilm(seed=3, n_cuts=8, n_pans=0, size=48, n_frames=300)))
    for width, scheme in ((1440, "light"), (1440, "dark"), (820, "light"), (360, "light"), (360, "dark")):
        page = visit(server.address, width=width, color_scheme=scheme, reduced_motion="reduce")
        reads(page, "ratio", r"^\d")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        levels = [int(part) for part in ground.strip("rgb()").split(",")]
        assert (np.mean(levels) < 60) == (scheme == "dark")
        assert page.evaluate(FAINT_TEXTS) == []
        if folder := os.environ.get("PSMT_SCREENSHOTS"):
            reads(page, "machine-text", "Active atoms: [1-9]")
            page.wait_for_timeout(500)
            page.screenshot(path=f"{folder}/live-{width}-{scheme}.png", full_page=True)
    # On a phone, a long name does not push the theme switch to a line of its own, and the error fills its card.
    boxes = page.evaluate(
        """() => {
          document.getElementById("source").textContent = "a film with quite a long name.mp4, 1920 × 1080 in colour";
          const box = (part) => document.querySelector(part).getBoundingClientRect();
          return [box("h1"), box("#theme"), box("#wrong"), box(".pictures .card:last-child")];
        }"""
    )
    title, switch, error, card = boxes
    assert title["top"] < switch["top"] + switch["height"] / 2 < title["bottom"] and switch["right"] <= 360
    assert error["width"] > card["width"] / 2
    # Every control and picture has a name for screen readers.
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas[role=img]")].filter((part) =>
          !(part.getAttribute("aria-label") || part.textContent.trim() || part.labels?.length)).length"""
    )
    assert unnamed == 0


OPACITY = "() => Number(getComputedStyle(document.getElementById('now')).opacity)"


def pixels(page, name):
    """Return the grey levels of a canvas."""
    return page.evaluate(
        """(id) => {
          const canvas = document.getElementById(id);
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return [...data].filter((_, i) => i % 4 === 0);
        }""",
        name,
    )


@pytest.fixture
def serve_paused(serve):
    """Start a server of a film that is paused before its first frame."""

    def start(film):
        session = open_session(film)
        session.feed.pause()
        return serve(session)

    return start


def step_through(page, server, n_steps):
    """Show the model frames one by one; none is dropped, however slow the machine is."""
    for _ in range(n_steps):
        before = server.sessions[0].snapshot.state.get("step", 0)
        server.sessions[0].submit(Control("step"))
        eventually(page, lambda before=before: server.sessions[0].snapshot.state.get("step", 0) > before)


def test_an_event_shows_the_frame_before_what_was_expected_and_what_came(serve_paused, visit, film):
    server = serve_paused(film[30:])
    page = visit(server.address)
    step_through(page, server, 60)
    page.wait_for_selector("#events button")
    (event,) = server.sessions[0].snapshot.events
    at = round(25 * event.position)
    page.click("#events button")
    titles = page.locator("#pictures h2:visible").all_inner_texts()
    assert titles == ["The frame before", "The predicted frame", "The true frame"]
    # The message does not cover them.
    for width in (390, 1280):
        page.click("#banner-button")
        page.set_viewport_size({"width": width, "height": 700})
        page.click("#events button")
        bottom, top = (
            page.evaluate(f"() => document.querySelector('{part}').getBoundingClientRect().{side}")
            for part, side in (("#banner", "bottom"), ("#pictures figcaption", "top"))
        )
        assert bottom <= top
    for name, frame in (("now", film[30 + at - 1]), ("error", film[30 + at])):
        eventually(page, lambda n=name, f=frame: np.corrcoef(pixels(page, n), f.ravel())[0, 1] > 0.98)
    # The model expected the old scene to go on.
    expected = np.array(pixels(page, "expected"))
    old, new = (np.corrcoef(expected, film[30 + at + k].ravel())[0, 1] for k in (-1, 0))
    assert old > 0.9 > 0.5 > new
    assert page.is_hidden("#square-now")
    page.click("#banner-button")
    assert page.locator("#pictures h2:visible").first.inner_text() == "Current frame"
    # A click on its mark in the timeline shows it again, too.
    box = page.locator("#timeline").bounding_box()
    share = event.position / server.sessions[0].feed.duration
    page.click("#timeline", position={"x": share * box["width"], "y": 30})
    assert "Cut at 0:02" in page.inner_text("#banner")


def test_the_timeline_seeks_by_click_and_by_key(serve_film, visit, film):
    server = serve_film(np.concatenate([film] * 4))
    page = visit(server.address)
    server.sessions[0].submit(Control("pause"))
    reads(page, "source", "paused")
    eventually(page, lambda: page.get_attribute("#timeline", "role") == "slider")
    page.click("#timeline", position={"x": 0.5 * page.locator("#timeline").bounding_box()["width"], "y": 40})
    eventually(page, lambda: abs(server.sessions[0].snapshot.state["position"] - 12.8) < 0.5)
    before = server.sessions[0].snapshot.state["position"]
    page.focus("#timeline")
    page.keyboard.press("ArrowRight")
    eventually(page, lambda: server.sessions[0].snapshot.state["position"] == pytest.approx(before + 5, abs=0.1))
    eventually(page, lambda: page.get_attribute("#timeline", "aria-valuetext") == "0:17 of 0:25")
    page.keyboard.press("ArrowLeft")
    eventually(page, lambda: server.sessions[0].snapshot.state["position"] == pytest.approx(before, abs=0.1))
    reads(page, "timeline-text", "Click to go there")
    # To go to another time is not an event.
    assert server.sessions[0].snapshot.state["n_events"] == 0


def test_speed_sensitivity_source_and_patch(serve_film, visit, film):
    server = serve_film(film)
    page = visit(server.address)
    reads(page, "ahead", "s ahead")
    page.select_option("#speed", "0.5")
    eventually(page, lambda: server.sessions[0].feed.speed == 0.5)
    page.select_option("#alarms", "100")
    eventually(page, lambda: server.sessions[0].snapshot.state["alarms"] == 100)
    box = page.locator("#now").bounding_box()
    page.click("#now", position={"x": 0.25 * box["width"], "y": 0.75 * box["height"]})
    eventually(page, lambda: server.sessions[0].snapshot.state["patch_corner"] == (28, 4))
    left = "() => Math.round(parseFloat(document.getElementById('square-now').style.left))"
    eventually(page, lambda: page.evaluate(left) == round(100 * 4 / SIDE))
    page.select_option("#choice", label="builtin:glide")
    reads(page, "source", "glide, 200 × 200")
    eventually(page, lambda: server.sessions[0].snapshot.state["step"] > 10)
    page.select_option("#choice", label="camera of the browser")
    reads(page, "lead", "Waiting for a camera")
    assert page.is_disabled("#speed")


def test_a_second_page_shows_what_the_first_has_set_also_while_paused(serve_film, visit, film):
    server = serve_film(film)
    first = visit(server.address)
    reads(first, "ahead", "s ahead")
    first.keyboard.press("Space")
    reads(first, "source", "paused")
    other = visit(server.address)
    for page in (first, other):
        reads(page, "source", "paused")
    first.fill("#horizon", "7")
    first.select_option("#speed", "2")
    first.select_option("#alarms", "10")
    late = visit(server.address)
    for page in (other, late):
        values = {"horizon": "7", "speed": "2", "alarms": "10"}
        for name, value in values.items():
            eventually(page, lambda p=page, n=name, v=value: p.input_value(f"#{n}") == v)


def colourful(n_frames, height=36, width=64):
    """A film (n_frames, height, width, 3) of a red and blue pattern that moves."""
    x, y = np.arange(width), np.arange(height)[:, None]
    film = np.zeros((n_frames, height, width, 3), np.float32)
    for t in range(n_frames):
        film[t, :, :, 0] = 0.5 + 0.4 * np.sin((x - t) / 4) * np.cos(y / 3)
        film[t, :, :, 2] = 0.5 + 0.4 * np.cos((x + t) / 5 + y / 4)
    return film


def test_several_sources_in_colour_and_whole(serve, visit, film):
    server = serve(*open_sessions(colourful(200), film))
    page = visit(server.address)
    reads(page, "source", "array, 64 × 36")
    eventually(page, lambda: contrast(page, "expected") > 1)
    box = page.locator("#now").bounding_box()
    assert box["width"] / box["height"] == pytest.approx(64 / 36, rel=0.02)
    # Frame and prediction have colour: red differs from green.
    differs = """(id) => { const canvas = document.getElementById(id);
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let sum = 0; for (let i = 0; i < data.length; i += 4) sum += Math.abs(data[i] - data[i + 1]);
      return 4 * sum / data.length; }"""
    for name in ("now", "expected"):
        eventually(page, lambda n=name: page.evaluate(differs, n) > 40)
    # Both sources have a tile. A click shows the other one in all panels, and the controls are then for it.
    eventually(page, lambda: page.locator("#tiles canvas").count() == 2)
    eventually(page, lambda: "× copying" in page.locator("#tiles small >> nth=1").inner_text())
    page.click("#tiles button >> nth=1")
    reads(page, "source", "array, 48 × 48")
    reads(page, "ratio", r"^\d")
    assert page.locator("#tiles button >> nth=1").get_attribute("aria-current") == "true"
    page.click("#pause")
    reads(page, "source", "paused")
    assert server.sessions[1].feed.paused and not server.sessions[0].feed.paused
    assert page.get_attribute("#events-csv", "href") == "/1/events.csv"
    with page.expect_download() as download:
        page.click("#scores-csv")
    assert len(download.value.path().read_text().splitlines()) > 5
    page.click("#tiles button >> nth=0")
    reads(page, "source", "array, 64 × 36$")
    assert "dropped" in page.inner_text(".vitals")


def test_the_pictures_of_a_very_wide_film_are_below_each_other(serve, visit):
    server = serve(open_session(colourful(60, height=20, width=200)))
    for width in (1280, 390):
        page = visit(server.address, width=width)
        reads(page, "source", "200 × 20")
        boxes = [page.locator(f"#{name}").bounding_box() for name in ("now", "expected", "error")]
        assert boxes[0]["width"] > 0.75 * width
        assert all(one["y"] + one["height"] < other["y"] for one, other in itertools.pairwise(boxes))
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_a_page_that_is_opened_while_all_sources_are_paused_shows_a_tile_of_each(serve, visit, film):
    sessions = open_sessions(film, colourful(60))
    for session in sessions:
        session.feed.step()  # one frame, and a pause
    server = serve(*sessions)
    wait_for(lambda: all(session.snapshot.state.get("step") == 1 for session in sessions))
    page = visit(server.address)
    eventually(page, lambda: page.locator("#tiles b").all_inner_texts() == ["array", "array"])
    widths = "() => [...document.querySelectorAll('#tiles canvas')].map((canvas) => canvas.width)"
    eventually(page, lambda: page.evaluate(widths) == [2 * SIDE, 2 * 64])


def test_every_key_and_a_click_on_the_curve(serve_paused, visit, film):
    server = serve_paused(film[30:])
    page = visit(server.address)
    step_through(page, server, 60)
    (event,) = server.sessions[0].snapshot.events
    page.wait_for_selector("#events button")
    # The mark of the event in the curve of surprise.
    box = page.locator("#surprise-curve").bounding_box()
    last = server.sessions[0].snapshot.state["step"]
    right = box["width"] - 8
    page.click("#surprise-curve", position={"x": right - (last - event.step) / 150 * (right - 34), "y": 60})
    reads(page, "banner-text", "Cut at")
    page.keyboard.press("Escape")
    assert page.is_hidden("#banner")
    state = lambda: server.sessions[0].snapshot.state  # noqa: E731
    page.keyboard.press(".")
    eventually(page, lambda: state()["step"] == last + 1)
    page.keyboard.press("]")
    eventually(page, lambda: state()["horizon"] == 2)
    page.keyboard.press("[")
    eventually(page, lambda: state()["horizon"] == 1)
    page.keyboard.press("s")
    page.wait_for_timeout(200)
    assert state()["notice"] is None, "without --save the key does nothing"
    server.sessions[0].submit(Control("save"))
    reads(page, "banner-text", "no file to save to")
    page.click("#banner-button")
    assert page.is_hidden("#banner")
    page.keyboard.press("Space")
    eventually(page, lambda: not state()["paused"])
    page.keyboard.press("r")
    page.click("#forget-yes")
    eventually(page, lambda: state()["epoch"] == 1)


def test_theme_full_screen_and_messages(serve_film, visit, film):
    server = serve_film(film)
    page = visit(server.address, color_scheme="light")
    reads(page, "ahead", "s ahead")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != light
    page.reload()
    assert page.evaluate(ground) != light, "the choice is remembered"
    page.click("#theme")
    assert page.evaluate(ground) == light

    reads(page, "ahead", "s ahead")
    page.click("#full")
    eventually(page, lambda: page.evaluate("() => document.fullscreenElement?.id") == "pictures")
    page.keyboard.press("f")
    eventually(page, lambda: page.evaluate("() => document.fullscreenElement") is None)

    # A message goes away by itself.
    server.sessions[0].submit(Control("save"))
    reads(page, "banner-text", "no file to save to")
    eventually(page, lambda: page.is_hidden("#banner"))


def test_the_model_is_judged_from_thirty_scores_on(serve_paused, visit, film):
    server = serve_paused(film)
    page = visit(server.address)
    step_through(page, server, 20)
    text = reads(page, "lead", "too early to judge it: [1-9]")
    assert "learned" not in text and "%" not in text
    step_through(page, server, 28)
    reads(page, "lead", "%.*smaller|%.*larger|the same as")


def test_the_end_of_the_server_is_shown(serve_film, browser, film):
    server = serve_film(film)
    page = browser.new_page()
    page.goto(server.address)
    reads(page, "source", str(SIDE))
    assert page.evaluate(OPACITY) == 1
    server.stop()
    reads(page, "banner-text", "does not answer|closed")
    assert page.evaluate(OPACITY) < 0.5
    page.close()
