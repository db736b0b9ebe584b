"""Makes docs/pictures/live.png: the page of `psmt live` on the built-in film, in a browser.

    python docs/pictures/live.py [--busy]

With --busy fewer and smaller frames wait for the model, so that a busy machine shows the model and not its load.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from psmt.live.messages import Control
from psmt.live.serving import LiveServer, open_session
from psmt.live.session import Session

HORIZON = 3
PICTURE = Path(__file__).with_name("live.png")


def watch(session: Session, n_frames: int, *, busy: bool) -> None:
    """Wait until the model has seen so many frames."""
    while session.snapshot.state.get("step", 0) < n_frames:
        state = session.snapshot.state
        if busy and (not state or state["awaits_frames"] or state["of_step"] == state["step"] + HORIZON):
            session.submit(Control("step"))
        time.sleep(0.01)


def main() -> None:
    """Serve, wait, and take the picture."""
    busy = "--busy" in sys.argv
    session = open_session("builtin:glide?seed=3", horizon=HORIZON, size=96 if busy else None)
    server = LiveServer(session)
    server.start()
    watch(session, 85 if busy else 300, busy=busy)
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
        page.goto(server.address)
        page.wait_for_selector("#atoms li:not([hidden])")
        page.wait_for_timeout(2_000)
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()
    server.stop()
    Image.open(PICTURE).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
