"""Make docs/pictures/live.png: the page of `psmt live` on the built-in film, in a browser.

    PYTHONPATH=. python docs/pictures/live.py [--size 200] [--horizon 3] [--speed 1] [--anyway]

The model is reset after its kernels are compiled, so that the picture does not show that time. If frames are dropped,
the picture shows the load of the machine instead of the model, so it is not kept unless --anyway is given. A busy
machine may play the film at a quarter of its speed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.cuts_film import CutsFilm
from PIL import Image
from playwright.sync_api import sync_playwright

from psmt.live.messages import SPEEDS, Control
from psmt.live.serving import LiveServer, open_session
from psmt.live.session import Session

PICTURE = Path(__file__).with_name("live.png")
SOURCE = CutsFilm(seed=3, n_cuts=8, n_pans=0, size=200)
N_COMPILING, N_WATCHED = 60, 460
"""Frames before the model is reset, and after."""

MOST_DROPPED = 0.02
PATIENCE = 300.0
"""Seconds after which the machine counts as too slow."""


def wait_until(session: Session, step: int) -> None:
    """Wait until the model has seen this many frames."""
    deadline = time.monotonic() + PATIENCE
    while session.snapshot.state.get("step", 0) < step:
        if time.monotonic() > deadline:
            raise SystemExit(f"fewer than {step} frames in {PATIENCE:g} seconds; use a smaller --size")
        time.sleep(0.01)


def main() -> None:
    """Serve the page, wait, and take the picture."""
    parser = argparse.ArgumentParser(description="Make docs/pictures/live.png.")
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--horizon", type=int, default=3)
    parser.add_argument("--speed", type=float, default=1.0, choices=SPEEDS)
    parser.add_argument("--anyway", action="store_true", help="keep the picture even if frames were dropped")
    options = parser.parse_args()
    session = open_session(SOURCE, size=options.size, horizon=options.horizon)
    session.feed.speed = options.speed
    server = LiveServer(session)
    server.start()
    try:
        wait_until(session, N_COMPILING)
        session.submit(Control("reset"))
        wait_until(session, N_COMPILING + N_WATCHED)
        with sync_playwright() as engine:
            browser = engine.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
            page.goto(server.address)
            page.wait_for_selector("#atoms li:not([hidden])")
            page.wait_for_timeout(3_000)
            picture = page.screenshot(full_page=True)
            state = session.snapshot.state
            browser.close()
    finally:
        server.stop()
    share = state["dropped"] / (state["dropped"] + state["step"])
    print(f"{state['pace']:.1f} frames a second, {state['latency']:.0f} ms, {100 * share:.1f} % of the frames dropped")
    if share > MOST_DROPPED and not options.anyway:
        sys.exit(f"{PICTURE} was not changed: too many frames were dropped; use an idle machine or a smaller --size")
    PICTURE.write_bytes(picture)
    Image.open(PICTURE).convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
