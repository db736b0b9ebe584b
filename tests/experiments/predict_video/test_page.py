"""The page of a predicted film: its first lines tell who won, and where not."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from made_up_video import make_video
from psmt.experiments.predict_video.film_painter import event_strip
from psmt.experiments.predict_video.recording import Event
from psmt.experiments.predict_video.report import (
    events_page,
    frame_claims,
    frames_page,
    frames_table,
    rollout_table,
    verdict,
)
from psmt.report import render


def claims(result):
    return {claim.key: claim for claim in frame_claims(result)}


def ratios(usual=0.5, **others):
    """Ratios (30,) of the error to that of copying, all `usual` but for those of frames given as ``f4=1.5``."""
    values = np.full(30, usual)
    for frame, ratio in others.items():
        values[int(frame[1:])] = ratio
    return {"frame_predictor": values}


@pytest.mark.parametrize(
    ("given", "begins", "parts"),
    [
        (
            ratios(f4=1.5, f5=3.0, f6=1.2, f20=1.1),
            "The frame predictor beat copying the last frame on this film",
            ["0.66 times that of copying", "better in 87% of the frames"],
        ),
        (ratios(1.3), "The frame predictor lost to copying", ["1.30 times", "better in 0% of the frames"]),
        (ratios(1.0005), "The frame predictor did as well as copying the last frame on this film, not better", []),
        (ratios(), "The frame predictor beat", ["better in 100% of the frames"]),
    ],
)
def test_the_verdict_says_who_won_and_where_not(given, begins, parts):
    text = verdict(make_video(given))
    assert text.startswith(begins)
    assert [part for part in parts if part not in text] == []


def test_where_nothing_moves_there_is_no_contest():
    still = make_video(copy_mse=0.0)
    assert verdict(still).startswith("Nothing moves in the 30 predicted frames")
    assert claims(still)["frames_beat_copying"].as_measured.verdict == "inconclusive"
    assert render(frames_page(still))


@pytest.mark.parametrize(
    ("own", "outcome"), [(0.5, "yes"), (0.7, "inconclusive"), (0.703, "inconclusive"), (0.9, "no")]
)
def test_peers_are_beaten_only_if_all_of_them_are(own, outcome):
    claim = claims(make_video({"frame_predictor": own, "fourier": 0.7}))["frames_beat_peers"]
    assert claim.as_measured.verdict == outcome
    assert len(claim.support) + len(claim.against) + len(claim.notes) == 2


@pytest.mark.parametrize(("own", "outcome"), [(0.5, "yes"), (0.995, "inconclusive"), (1.2, "no")])
def test_a_tie_with_copying_is_inconclusive(own, outcome):
    claim = claims(make_video({"frame_predictor": own}))["frames_beat_copying"]
    assert claim.as_measured.verdict == outcome
    lines = {"yes": claim.support, "no": claim.against, "inconclusive": claim.notes}[outcome]
    assert "relative to copying" in lines[0]


def test_a_mean_that_a_few_frames_decide_is_inconclusive():
    assert (
        claims(make_video(ratios(1.1, f3=0, f4=0, f5=0)))["frames_beat_copying"].as_measured.verdict == "inconclusive"
    )


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [((0.5, 0.7, 0.9), "yes"), ((0.5, 0.7, 1.2), "no"), ((0.5, 0.999), "inconclusive")],
)
def test_rollouts_must_win_at_every_step(steps, outcome):
    claim = claims(make_video(rollout_ratios=steps))["frames_left_alone"]
    assert claim.as_measured.verdict == outcome


def test_the_headline_names_every_horizon_at_which_something_else_won():
    beaten = make_video({"fourier": 0.4}, rollout_ratios=(0.5, 1.2, 1.3, 0.9, 1.4))
    assert "Fourier phase advance at 1, " in verdict(beaten)
    assert "copy last frame at 2, 3 and 5 frames ahead" in verdict(beaten)
    unbeaten = verdict(make_video(rollout_ratios=(0.5, 0.7)))
    assert "No other method was better at any horizon from 1 to 2 frames" in unbeaten


def test_events_are_listed_the_largest_if_there_are_many():
    largest = [Event(401 + k, (401 + k) / 25, "surprise", float(k)) for k in range(10, 60)]
    strips = {event.frame: b"JPEG" for event in largest}
    result = replace(make_video(), event_counts={"surprise": 60}, largest_events=largest, event_strips=strips)
    page = render(frames_page(result)).decode()
    assert "The 50 largest of 60 events" in page and "Events: 60 surprises." in page
    assert page.index(">411<") < page.index(">460<") and ">410<" not in page
    assert "one of 1,000 frames" in page
    assert page.count("what was expected, and what came") == 6
    pictures = render(events_page(result)).decode()
    assert pictures.count("<figcaption>Surprise at frame") == 50 and "the 50 largest of them" in pictures
    assert "http" not in pictures
    none = render(frames_page(make_video())).decode()
    assert "Events: none." in none


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_the_three_pictures_of_an_event_fit_on_a_phone():
    playwright = pytest.importorskip("playwright.sync_api")
    strip = event_strip(*np.random.default_rng(0).random((3, 30, 40, 3)).astype(np.float32))
    event = Event(401, 16.04, "surprise", 9.0)
    result = replace(
        make_video(), event_counts={"surprise": 1}, largest_events=[event], event_strips={event.frame: strip}
    )
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_content(render(events_page(result)).decode())
        box = page.locator("figure img").bounding_box()
        browser.close()
    assert box["width"] > 300 and box["x"] + box["width"] <= 390


def test_tables_mark_what_wins_and_what_loses():
    rows = {row[0].text: row for row in frames_table(make_video()).rows}
    assert rows["frame predictor"][1].mark == "best" and rows["frame predictor"][2].text == "0.50"
    assert rows["linear in pixels"][2] == ("2.00", "loses")
    assert rows["copy last frame"][2] == ("1", "")
    assert next(iter(rows)) == "frame predictor"
    rolled = {row[0].text: row for row in rollout_table(make_video(rollout_ratios=(0.5, 1.5))).rows}
    assert [cell.text for cell in rolled["frame predictor"][1:]] == ["0.50", "1.50"]
    assert [cell.mark for cell in rolled["frame predictor"][1:]] == ["", "loses"]


def test_page_opens_with_the_verdict_and_loads_nothing():
    result = make_video()
    page = render(frames_page(result)).decode()
    body = page[page.index("<h1>") :]
    assert body.index("The frame predictor beat copying") < body.index("<h2")
    assert "learned from 400 frames up to 399, received 400, predicted 401 to 430" in page
    assert "http" not in page
