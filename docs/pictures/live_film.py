"""Make docs/pictures/live.webp: a short recording of the page of `psmt live` on the built-in film.

    PYTHONPATH=. python docs/pictures/live_film.py [--size 120] [--speed 0.5]

The recording shows predictions, a longer time ahead, an event that is seen again, and the dark theme. It is written
only if it is smaller than `MOST_BYTES`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import monotonic

from benchmarks.cuts_film import CutsFilm
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from psmt.live.messages import SPEEDS
from psmt.live.serving import LiveServer, open_session
from psmt.surprise import N_RECORD

FILM = Path(__file__).with_name("live.webp")
MOST_BYTES = 1_000_000
WIDTH, HEIGHT, SHOWN = 1120, 840, 800
"""Size of the browser's window, and the width of the recording, in pixels."""

PERIOD = 0.25
"""Seconds between two pictures."""


def record(page: Page, seconds: float, pictures: list[Image.Image]) -> None:
    """Append pictures of the page for some seconds."""
    end = monotonic() + seconds
    while monotonic() < end:
        begin = monotonic()
        picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
        pictures.append(picture.resize((SHOWN, SHOWN * HEIGHT // WIDTH), Image.Resampling.LANCZOS))
        page.wait_for_timeout(max(1000 * (PERIOD - (monotonic() - begin)), 1))


def main() -> None:
    """Serve the page, act on it, and write the recording."""
    parser = argparse.ArgumentParser(description="Make docs/pictures/live.webp.")
    parser.add_argument("--size", type=int, default=120)
    parser.add_argument("--speed", type=float, default=0.5, choices=SPEEDS)
    options = parser.parse_args()
    session = open_session(CutsFilm(seed=3, n_cuts=8, n_pans=0, size=200), size=options.size)
    session.feed.speed = options.speed
    server = LiveServer(session)
    server.start()
    pictures: list[Image.Image] = []
    try:
        with sync_playwright() as engine:
            browser = engine.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto(server.address)

            def wait(condition: Callable[[], bool]) -> None:
                while not condition():
                    page.wait_for_timeout(50)

            wait(lambda: session.snapshot.state.get("step", 0) > 100 and session.snapshot.state["n_events"] > 0)
            wait(lambda: session.snapshot.state["n_recent"] >= N_RECORD)
            record(page, 2.5, pictures)
            page.fill("#horizon", "4")
            record(page, 2.5, pictures)
            page.click("#events button >> nth=0")
            record(page, 3.0, pictures)
            page.keyboard.press("Escape")
            record(page, 1.0, pictures)
            page.click("#theme")
            record(page, 3.0, pictures)
            browser.close()
    finally:
        server.stop()
    file = BytesIO()
    pictures[0].save(
        file,
        "WEBP",
        save_all=True,
        append_images=pictures[1:],
        duration=round(1000 * PERIOD),
        loop=0,
        quality=55,
        method=6,
    )
    size = file.getbuffer().nbytes
    print(f"{len(pictures)} pictures, {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"{FILM} was not changed: it would have {size:,} bytes")
    FILM.write_bytes(file.getvalue())


if __name__ == "__main__":
    main()
