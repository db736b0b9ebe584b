"""The session: predictions, scores, controls, and what it publishes."""

from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from live.conftest import SIDE, glide, wait_for
from psmt import FramePredictor
from psmt.data import open_frames, open_stream
from psmt.errors import PSMTError
from psmt.evaluation import mse
from psmt.live.feed import Arrival, BrowserCamera, Latest, SourceFeed
from psmt.live.messages import Control, Mailbox, unpack
from psmt.live.patch import MAX_WAITING, SIZES, PatchModel, PatchWorker
from psmt.live.predictions import LiveEvent, LivePredictor, Scores
from psmt.live.serving import open_session
from psmt.live.session import LiveSnapshot, Session
from psmt.persistence import load_model
from psmt.surprise import N_FIRST, N_RECORD


@pytest.fixture
def begin():
    """Start sessions, and stop them at the end."""
    running = []

    def start(source, **options):
        session = source if isinstance(source, Session) else open_session(source, **options)
        running.append(session)
        session.start()
        return session

    yield start
    for session in running:
        session.stop()


def state_of(session):
    return session.snapshot.state


def step_through(session, n_steps):
    """Show the model frames one by one; none is dropped, however slow the machine is."""
    for _ in range(n_steps):
        before = state_of(session).get("step", 0)
        session.submit(Control("step"))
        wait_for(lambda before=before: state_of(session).get("step", 0) > before)


# Predicting whole frames


@pytest.mark.parametrize("horizon", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_prediction_is_scored_by_its_own_frame_and_compared_with_copying(film, horizon):
    predictor = LivePredictor(horizon=horizon)
    n_scored = 0
    for t, frame in enumerate(film[:20]):
        score = predictor.receive(frame)
        wait_for(lambda: predictor._rollout is None or predictor.collect())
        if t + 1 >= N_FIRST:
            assert predictor.prediction.of_step == predictor.step + horizon
        if score is not None:
            n_scored += 1
            assert score.copy_mse == pytest.approx(float(mse(film[t - horizon], frame, axes=2)))
            assert score.mse == pytest.approx(float(np.mean(score.error**2)), rel=1e-5)
    predictor.close()
    assert n_scored == 20 - N_FIRST - horizon + 1


def test_a_rollout_is_the_prediction_of_the_model(film):
    predictor = LivePredictor(horizon=4)
    for frame in film[:20]:
        predictor.receive(frame)
        wait_for(lambda: predictor._rollout is None or predictor.collect())
    np.testing.assert_array_equal(predictor.prediction.frame, predictor.model.predict(4)[-1])
    predictor.close()


def test_the_model_records_rollouts_only_beyond_one_frame(film):
    predictor = LivePredictor(horizon=1)
    for frame in film[: N_FIRST + 1]:
        predictor.receive(frame)
    assert not predictor.model.rollouts
    predictor.set_horizon(3)
    assert predictor.model.rollouts
    predictor.close()


def test_a_late_rollout_is_shown_but_not_scored(film):
    predictor = LivePredictor(horizon=2)
    for frame in film[: N_FIRST + 2]:
        predictor.receive(frame)
    rollout = predictor._rollout
    rollout.future.result(timeout=30)
    predictor.step = rollout.of_step
    assert predictor.collect()
    assert predictor.prediction.of_step == predictor.step
    assert not predictor._pending
    # The next rollout starts from the newest frame, even if no other frame arrives.
    wait_for(predictor.collect)
    assert predictor.prediction.of_step == predictor.step + 2
    predictor.close()


def test_the_running_ratio_is_a_ratio_of_sums():
    scores = Scores()
    assert scores.ratio is None
    scores.recent.append((0.0, 0.0))
    assert scores.ratio is None, "copying made no error"
    scores.recent.append((1.0, 4.0))
    scores.recent.append((3.0, 4.0))
    assert scores.ratio == pytest.approx(0.5)


def test_cuts_flashes_and_surprises_are_events():
    rng = np.random.default_rng(0)
    scene, other = rng.random((2, 8, 8), np.float32)
    usual = np.exp(0.2 * rng.standard_normal(240))
    usual[200:203] = 40.0
    scores, mailbox, sent = Scores(n_scored=N_RECORD), Mailbox(), []
    last = scene
    for t in range(240):
        frame = other if t in (150, 151) else scene
        kind = scores.add_frame(t, last, frame, usual[t], cut=t in (150, 152))
        if kind is not None:
            scores.add_event(LiveEvent(scores.n_events, t, t / 25, t / 25, kind, usual[t]))
        last = frame
        snapshot = LiveSnapshot(t + 1, {"epoch": 0}, b"", tuple(scores.points), tuple(scores.events))
        parts = [unpack(message)[0] for message in mailbox.mail(snapshot, {})]
        sent += [(t, part["number"], part["what"]) for part in parts if part["kind"] == "event"]
    assert sent == [(150, 0, "cut"), (152, 0, "flash"), (200, 1, "surprise")]
    assert [(event.step, event.kind) for event in scores.events] == [(150, "flash"), (200, "surprise")]
    assert [row.kind for row in scores.past_events] == ["flash", "surprise"]
    assert [(point.step, point.mark) for point in scores.points if point.mark] == [(150, "flash"), (200, "surprise")]
    assert scores.n_events == 2


def test_events_wait_for_a_record_and_for_even_steps():
    rng = np.random.default_rng(0)
    scene, other = rng.random((2, 8, 8), np.float32)
    early = Scores(n_scored=N_RECORD - 1)
    assert early.add_frame(0, scene, other, 40.0, cut=True) is None
    scores = Scores(n_scored=N_RECORD)
    assert scores.add_frame(0, scene, other, 40.0, cut=True, even=False) is None
    assert scores.add_frame(1, scene, other, 40.0, cut=True) == "cut"


def test_sensitivity_changes_the_threshold_and_keeps_the_record():
    # A power law, as the alarm assumes.
    surprises = np.exp(0.3 * np.random.default_rng(0).exponential(size=9_000))
    frame = np.zeros((8, 8), np.float32)
    n_alarms = {}
    for per_hour in (1.0, 100.0):
        scores = Scores(n_scored=N_RECORD)
        for t, surprise in enumerate(surprises):
            if t == 500:
                scores.set_alarms(per_hour)
            n_alarms[per_hour] = n_alarms.get(per_hour, 0) + (
                scores.add_frame(t, frame, frame, surprise, cut=False) is not None
            )
    assert n_alarms[1.0] <= 2 < n_alarms[100.0] <= 30


# The patch at the centre


class _Held:
    """Stands in for a patch model: learning takes until `go` is set."""

    def __init__(self):
        self.go, self.n_received = Event(), 0

    def receive(self, frame):
        self.go.wait(20)
        self.n_received += 1
        if frame is None:
            raise ValueError("no frame")

    def view(self, horizon):
        return {"version": 1, "horizon": horizon}

    def atoms_png(self):
        return b"atoms"


def test_frames_do_not_wait_for_the_patch_and_no_queue_grows():
    model = _Held()
    worker = PatchWorker(model)
    frame = np.zeros((SIDE, SIDE), np.float32)
    for _ in range(3 * MAX_WAITING):
        worker.receive(frame, 1)
    assert not worker.collect() and worker.shown.message == b""
    model.go.set()
    # With `wait`, the view is of this very frame.
    worker.receive(frame, 7, wait=True)
    while len(worker._tasks) == MAX_WAITING:
        worker.collect()
    worker.receive(frame, 7, wait=True)
    assert model.n_received <= MAX_WAITING + 1
    assert unpack(worker.shown.message)[0] == {"kind": "patch", "version": 1, "horizon": 7}
    assert worker.shown.atoms == b"atoms"
    worker.collect()
    worker.receive(None, 1, wait=True)
    with pytest.raises(ValueError, match="no frame"):
        worker.collect()
    worker.close()


def test_the_patch_model_shows_atoms_trajectory_and_graph():
    film = glide(SIZES[1][1] + 2)
    patch = PatchModel((SIDE, SIDE))
    for frame in film[: SIZES[0][1] - 1]:
        patch.receive(frame)
    assert patch.view(1) is None and patch.n_awaited == 1
    patch.receive(film[SIZES[0][1] - 1])
    first = patch.view(3)
    assert patch.version == 1 and len(first["ahead"]) == 3
    for frame in film[SIZES[0][1] :]:
        patch.receive(frame)
    view, model = patch.view(1), patch.model
    assert patch.version == 2 and model.n_atoms == SIZES[1][0]
    code = model.codes_[-1]
    assert view["active"][0] == code.argmax()
    assert view["activity"] == sorted(view["activity"], reverse=True)
    assert all(code[atom] > 0 for atom in view["active"])
    # Distances do not depend on the sign of the directions.
    points = model.codes_[-2:] @ model.embedding_[:2].T
    shown = np.array(view["trail"][-2:])
    np.testing.assert_allclose(np.abs(shown), np.abs(points), atol=1e-3)
    columns = model.embedding_ / np.linalg.norm(model.embedding_, axis=0).clip(1e-300)
    for a, b in view["links"]:
        assert columns[:, a] @ columns[:, b] > 0.6 - 1e-9
        assert a in view["nodes"] and b in view["nodes"]
    assert len(view["seen"]) == patch.side**2
    assert patch.atoms_png().startswith(b"\x89PNG")


def test_directions_keep_their_sign(film):
    patch = PatchModel((SIDE, SIDE))
    for frame in film[: SIZES[0][1]]:
        patch.receive(frame)
    patch.view(1)
    kept = patch._axes.copy()
    patch._axes = -kept
    patch.view(1)
    np.testing.assert_allclose(patch._axes, -kept)


def test_a_still_scene_is_accepted():
    patch = PatchModel((SIDE, SIDE))
    for _ in range(SIZES[0][1] + 3):
        patch.receive(np.full((SIDE, SIDE), 0.5, np.float32))
    view = patch.view(2)
    assert view["active"] == [] and np.isfinite(view["trail"]).all()


# Frames as they arrive


def test_only_the_newest_frame_is_kept_and_the_others_are_counted():
    camera = BrowserCamera(SIDE)
    for level in range(5):
        camera.offer(bytes([level]) * camera.n_bytes)
    assert camera.n_dropped == 4
    assert camera.frames.take(0.0).frame.max() == pytest.approx(4 / 255)
    assert camera.frames.take(0.0) is None


def test_a_paused_camera_lets_single_steps_through():
    camera = BrowserCamera(SIDE)
    camera.pause()
    camera.offer(bytes(camera.n_bytes))
    assert camera.frames.take(0.0) is None
    camera.step()
    camera.offer(bytes(camera.n_bytes))
    camera.offer(bytes(camera.n_bytes))
    assert camera.frames.take(0.0) is not None
    assert camera.frames.take(0.0) is None and camera.n_dropped == 0
    camera.play()
    camera.offer(bytes(camera.n_bytes))
    assert camera.frames.take(0.0) is not None


def test_a_film_ends_or_begins_again(film):
    once = SourceFeed(open_frames(film[:3]), loop=False)
    once.rate = 1_000.0
    once.start()
    wait_for(lambda: once.ended)
    again = SourceFeed(open_frames(film[:3]), loop=True)
    again.rate = 1_000.0
    again.start()
    taken = 0
    while taken < 5:
        taken += again.frames.take(5.0) is not None
    assert not again.ended
    again.stop()


def test_a_film_that_fails_is_reported(begin):
    def frames():
        yield np.zeros((SIDE, SIDE))
        yield np.zeros((SIDE + 1, SIDE))

    session = begin(frames())
    wait_for(lambda: state_of(session).get("problem"))
    assert "frame 1 is 49 x 48 pixels" in state_of(session)["problem"]


def test_a_film_waits_while_paused_and_a_stream_does_not(film):
    def stream(n_frames):
        source = open_stream(iter(film[:5]), fps=10.0)
        return SourceFeed(replace(source, n_frames=n_frames))

    known, endless = stream(5), stream(None)
    known.pause(), endless.pause()
    known.start(), endless.start()
    wait_for(lambda: endless.ended)
    assert not known.ended, "a film waits while paused"
    known.stop()


def test_a_film_goes_to_another_time_also_while_paused_and_after_its_end(film):
    feed = SourceFeed(open_frames(film[:50]), loop=False)
    feed.pause()
    feed.start()
    for seconds in (1.2, 0.4, 1.6):
        feed.seek(seconds)
        arrival = feed.frames.take(10.0)
        assert arrival.position == pytest.approx(seconds)
        np.testing.assert_allclose(arrival.frame[:, :, 0], film[round(25 * seconds)], atol=1e-6)
    assert feed.frames.take(0.2) is None
    feed.speed = 4.0
    feed.play()
    wait_for(lambda: feed.ended)
    feed.frames.take(0.0)
    feed.pause()
    feed.seek(0.8)
    assert feed.frames.take(10.0).position == pytest.approx(0.8) and not feed.ended
    feed.stop()


def test_a_slow_model_gets_every_nth_frame(film):
    feed = SourceFeed(open_frames(film), loop=False)
    feed.keep_up(0.1)
    assert feed.stride == 3
    feed.keep_up(0.075)
    assert feed.stride == 3, "a margin keeps the stride"
    feed.speed = 0.5
    feed.start()
    taken = [round(25 * feed.frames.take(10.0).position) for _ in range(4)]
    feed.stop()
    # On a busy machine a whole step may be missed, but the frames stay on the grid.
    assert all(index % 3 == 0 for index in taken) and feed.n_dropped >= 6
    feed.keep_up(0.01)
    assert feed.stride == 1
    # A moment of load on a machine that needs 34 of the 40 ms per frame.
    feed.speed = 1.0
    feed.keep_up(0.045)
    assert feed.stride == 2
    feed.keep_up(0.034)
    assert feed.stride == 1


def test_wait_empty():
    slot = Latest()
    slot.put(1)
    assert not slot.wait_empty(0.0)
    slot.take(0.0)
    assert slot.wait_empty(0.0)


# A whole session


@pytest.mark.slow
def test_a_session_learns_marks_the_cut_and_beats_copying(begin, film):
    session = begin(film)
    session.submit(Control("pause"))
    step_through(session, 92)
    state = state_of(session)
    assert state["ratio"] < 0.7
    assert state["dropped"] == 0
    cuts = [point.step for point in session.snapshot.points if point.mark == "cut"]
    # The pause comes a frame or so after the start.
    assert len(cuts) == 1 and 78 <= cuts[0] <= 82
    (event,) = [event for event in session.snapshot.events if event.kind == "cut"]
    assert event.step == cuts[0] and event.strip.startswith(b"\xff\xd8")

    session.submit(Control("horizon", 3))
    step_through(session, 8)
    wait_for(lambda: state_of(session)["of_step"] is not None)
    assert state_of(session)["horizon"] == 3

    session.submit(Control("reset"))
    wait_for(lambda: state_of(session)["epoch"] == 1)
    assert session.snapshot.points == () and session.snapshot.events == ()
    assert state_of(session)["awaits_frames"] == N_FIRST


def test_a_saved_model_continues(begin, film, tmp_path):
    path = tmp_path / "model.npz"
    session = begin(film, save_to=path)
    session.submit(Control("pause"))
    step_through(session, N_FIRST + 4)
    session.submit(Control("save"))
    wait_for(lambda: state_of(session)["notice"])
    assert "model.npz" in state_of(session)["notice"]["text"] and not state_of(session)["notice"]["bad"]
    model = load_model(path)
    assert isinstance(model, FramePredictor) and [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]
    later = open_session(film, model=model)
    assert later._frames.n_awaited == 0 and later._frames.model is not model


@pytest.mark.parametrize("error", [ValueError("the numbers are odd"), OSError(28, "No space left on device")])
def test_a_model_that_cannot_be_saved_goes_on(begin, film, tmp_path, monkeypatch, error):
    session = begin(film, save_to=tmp_path / "model.npz")
    session.submit(Control("pause"))
    step_through(session, N_FIRST + 2)
    model = session._frames.model

    def fail(_path):
        raise error

    monkeypatch.setattr(model, "save", fail)
    session.submit(Control("save"))
    wait_for(lambda: state_of(session)["notice"])
    notice = state_of(session)["notice"]
    assert notice["bad"] and (error.strerror if isinstance(error, OSError) else "odd") in notice["text"]
    step_through(session, 1)
    assert session._frames.model is model and state_of(session)["epoch"] == 0


def test_nothing_is_saved_without_a_file(begin, film):
    session = begin(film)
    session.submit(Control("save"))
    wait_for(lambda: state_of(session).get("notice"))
    assert state_of(session)["notice"]["bad"] and not state_of(session)["saves"]


def test_models_of_other_shapes_are_refused(film):
    flat = FramePredictor().fit(film[:4, :32])
    with pytest.raises(PSMTError, match="frames of 32 x 48 pixels, and array has 32 x 32"):
        open_session(film, model=flat)
    with pytest.raises(PSMTError, match="1 to 10"):
        open_session(film, horizon=11)
    with pytest.raises(PSMTError, match="make it first"):
        open_session(film, save_to=Path("/nowhere/at/all/model.npz"))


def test_a_failing_model_is_reported_and_starts_again(begin, film, monkeypatch):
    session = begin(film)
    session.submit(Control("pause"))
    step_through(session, N_FIRST + 1)

    def fail(_frame):
        raise FloatingPointError("out of numbers")

    monkeypatch.setattr(session._frames.model, "update", fail)
    session.submit(Control("step"))
    wait_for(lambda: state_of(session)["epoch"] == 1)
    assert "out of numbers" in state_of(session)["notice"]["text"]
    step_through(session, 2)


def test_the_time_ahead_is_the_same_when_frames_are_dropped(begin, film):
    session = open_session(film, horizon=6)
    session.feed.stride = 3
    session.feed.pause()
    positions = iter(np.arange(0, 200, 3) / 25.0)
    for k in range(20):
        session._process(Arrival(film[3 * k], 0.0, next(positions)))
    assert session._frames.horizon == 2
    session._publish()
    assert state_of(session)["horizon"] == 6 and state_of(session)["step_seconds"] == pytest.approx(0.12)
    session.stop()


def test_dropped_frames_are_no_cuts(film):
    session = open_session(film)
    began = np.array(glide(200, size=SIDE))
    # A busy machine misses 60 frames of a take, then the take goes on.
    order = [*range(60), *range(120, 140)]
    seen_cut = False
    for index in order:
        session._process(Arrival(began[index], index / 25, index / 25))
        seen_cut |= session._frames.model is not None and session._frames.model.cut_
    assert seen_cut, "the gap is a sharp change for the model"
    assert not session.scores.events
    # The same change without a gap is a cut.
    for k, frame in enumerate(film[80:90]):
        session._process(Arrival(frame, 0.0, (140 + k) / 25))
    assert [event.kind for event in session.scores.events] == ["cut"]
    session.stop()


@pytest.mark.slow
def test_a_take_at_its_own_pace_has_no_cut_in_its_first_half_minute(begin):
    session = begin("builtin:glide")
    wait_for(lambda: state_of(session).get("position", 0.0) > 30.0, 200)
    # About one surprise per hour is a false alarm, by definition.
    assert [event for event in session.snapshot.events if event.kind != "surprise"] == []
    assert state_of(session)["step"] > 30


def test_the_timeline_is_updated_when_a_film_is_repeated(film):
    session = open_session(film[:50])
    shown = []
    for surprise in (1.0, 9.0):
        for index in range(50):
            session._position = index / 25
            session._mark_timeline(surprise if index == 20 else 0.5)
        header = unpack(session._timeline)[0]
        shown.append(dict(header["bins"])[int(0.8 / header["width"])])
    assert shown == [1.0, 9.0]
    session.stop()


def test_scores_and_events_are_tables(begin, film):
    session = begin(film)
    session.submit(Control("pause"))
    step_through(session, 12)
    lines = session.scores.table("scores").splitlines()
    assert lines[0] == "step,seconds,position,mse,copy_mse,surprise"
    step, _, position, own, copied, _ = map(float, lines[-1].split(","))
    assert step == state_of(session)["step"] and position == pytest.approx(state_of(session)["position"])
    assert own > 0 and copied > 0
    assert session.scores.table("events").splitlines()[0] == "number,step,seconds,position,kind,surprise"


def test_the_patch_moves_and_stays_inside_the_frame(begin, film):
    session = begin(film)
    session.submit(Control("pause"))
    step_through(session, 2)
    for centre, corner in (([0.25, 0.75], (28, 4)), ([1, 0], (0, 32))):
        session.submit(Control("patch", centre))
        wait_for(lambda corner=corner: state_of(session)["patch_corner"] == corner)
    assert session._patch.model.n_awaited == SIZES[0][1]
    session.submit(Control("reset"))
    wait_for(lambda: state_of(session)["epoch"] == 1)
    assert state_of(session)["patch_corner"] == (0, 32)


def test_another_source_without_a_restart(begin, film):
    session = begin(film, save_to=None)
    wait_for(lambda: state_of(session).get("step", 0) > 2)
    names = state_of(session)["sources"]
    assert names[1:] == ["camera of the browser", "builtin:glide"]
    session.submit(Control("source", 2))
    wait_for(lambda: state_of(session)["chosen"] == 2 and state_of(session)["step"] > 3)
    assert state_of(session)["shape"] == (200, 200) and state_of(session)["epoch"] == 1
    session.submit(Control("source", 99))
    session.submit(Control("source", 1))
    wait_for(lambda: state_of(session)["chosen"] == 1)
    assert isinstance(session.feed, BrowserCamera)


def test_a_source_that_cannot_be_opened_keeps_the_old_one(begin, film):
    session = begin(open_session(film, "/nowhere/at/all.mp4"))
    session.submit(Control("source", 1))
    wait_for(lambda: state_of(session).get("notice"))
    assert "does not exist" in state_of(session)["notice"]["text"] and state_of(session)["chosen"] == 0
    step = state_of(session)["step"]
    wait_for(lambda: state_of(session)["step"] > step)


# Pages that miss snapshots


@pytest.mark.slow
def test_a_page_that_missed_snapshots_gets_all_points_and_events(begin, film):
    session = begin(film)
    session.submit(Control("pause"))
    step_through(session, 10)
    early, late = Mailbox(), Mailbox()
    first = [unpack(message)[0] for message in early.mail(session.snapshot, {})]
    step_through(session, 80)
    (header, strip), *small = [unpack(message) for message in early.mail(session.snapshot, {})]
    seen = [point[0] for point in first[0]["points"] + header["points"]]
    assert seen == list(range(1, header["step"] + 1))
    assert strip == session.snapshot.strip
    assert {part["kind"] for part, _ in small} == {"atoms", "patch", "event", "timeline"}
    whole = unpack(late.mail(session.snapshot, {})[0])[0]
    assert [point[0] for point in whole["points"]] == seen
    assert early.mail(session.snapshot, {}) == []
    # Unchanged parts are not sent again, and the patch is packed once for all pages.
    again = replace(session.snapshot, number=session.snapshot.number + 1)
    assert [unpack(message)[0]["kind"] for message in early.mail(again, {})] == ["frame"]
    shared = [message for message in Mailbox().mail(again, {}) if unpack(message)[0]["kind"] == "patch"]
    assert len(shared) == 1 and shared[0] is session.snapshot.patch.message
