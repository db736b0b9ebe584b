"""The page in a real browser: panels fill, controls work, no errors, and no requests to other machines."""

import os
import re
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
import numpy as np
import pytest

import psmt
from live.conftest import SIDE, wait_for
from psmt.video import FramePSMT

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
    """Wait until the text of an element matches."""
    eventually(page, lambda: re.search(pattern, page.text_content(f"#{name}")))
    return page.text_content(f"#{name}")


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
    before = server.session.snapshot.state["step"]
    page.click("#step")
    eventually(page, lambda: server.session.snapshot.state["step"] != before)
    assert server.session.snapshot.state["step"] == before + 1
    page.click("#pause")
    reads(page, "pause-text", "Pause")

    # The slider, by mouse and by keys.
    page.fill("#horizon", "4")
    reads(page, "ahead", "4 frames")
    page.locator("body").press("]")
    reads(page, "ahead", "5 frames")
    page.select_option("#extrapolation", "hold")
    eventually(page, lambda: server.session.snapshot.state["extrapolation"] == "hold")

    # Saving writes the file given by --save; recording gives a film.
    page.fill("#horizon", "1")
    reads(page, "ratio", r"^1\.00")
    page.click("#save")
    reads(page, "banner-text", "saved to model.npz")
    assert FramePSMT.load(tmp_path / "model.npz").extrapolation == "hold"
    with page.expect_download() as download:
        page.click("#record")
    with av.open(download.value.path()) as container:
        assert sum(1 for _ in container.decode(video=0)) > 10

    # Reset starts again.
    page.click("#reset")
    eventually(page, lambda: server.session.snapshot.state["epoch"] == 1)
    reads(page, "lead", "Watching the first frames|too early|predicts")


def test_the_camera_of_the_browser(serve_film, visit):
    server = serve_film("camera")
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
def test_the_page_fits_on_every_screen_in_both_schemes(serve_film, visit, film):
    server = serve_film(film)
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
    # Every control and picture has a name for screen readers.
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas[role=img]")].filter((part) =>
          !(part.getAttribute("aria-label") || part.textContent.trim() || part.labels?.length)).length"""
    )
    assert unnamed == 0


def test_the_end_of_the_server_is_shown(serve_film, browser, film):
    server = serve_film(film)
    page = browser.new_page()
    page.goto(server.address)
    reads(page, "source", str(SIDE))
    server.stop()
    reads(page, "banner-text", "does not answer|closed")
    page.close()


class _Notebook(BaseHTTPRequestHandler):
    """A page with one output cell."""

    cell = ""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html><title>notebook</title><link rel=icon href=data:,>{self.cell}".encode())

    def log_message(self, *_words):
        pass


def test_an_output_cell_of_a_notebook_shows_the_page(visit, film):
    with psmt.live(film, height=500) as shown, ThreadingHTTPServer(("127.0.0.1", 0), _Notebook) as notebook:
        _Notebook.cell = shown._repr_html_()
        threading.Thread(target=notebook.serve_forever, daemon=True).start()
        page = visit(f"http://localhost:{notebook.server_port}/")
        inside = page.frame_locator("iframe").locator("#source")
        eventually(page, lambda: f"{SIDE} × {SIDE}" in inside.text_content())
        page.close()
        notebook.shutdown()
