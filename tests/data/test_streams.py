"""Streams are read once, from first frame to last; those that break or are not there say so in a sentence."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import av
import numpy as np
import pytest

from psmt.data import open_frames, open_stream
from psmt.data.patches import read_patches
from psmt.data.readers import streams, video
from psmt.data.readers.streams import LiveVideo
from psmt.errors import FrameSourceError


@pytest.fixture(scope="module")
def recording(tmp_path_factory, moving, write_film):
    """The bytes of a broadcast stream, 40 frames long."""
    path = tmp_path_factory.mktemp("streams") / "film.ts"
    options = {"qscale": "2", "g": "8"}
    return write_film(path, moving, codec="mpeg2video", pix_fmt="yuv420p", options=options).read_bytes()


@pytest.fixture
def serve():
    """A function that serves bytes on this computer, promising more than there are if ``promise`` says so."""
    servers = []

    def start(content, *, promise=None, then=lambda: None):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "video/mp2t")
                self.send_header("Content-Length", str(promise or len(content)))
                self.end_headers()
                self.wfile.write(content)
                then()

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/film.ts"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_stream_over_the_network_is_the_film_that_is_sent(serve, recording, tmp_path):
    stream = open_frames(serve(recording))
    assert isinstance(stream, LiveVideo)
    assert stream.shape == (48, 64)
    assert stream.fps == pytest.approx(25)
    assert stream.n_frames is None
    (tmp_path / "film.ts").write_bytes(recording)
    frames = np.array(list(stream))
    assert len(frames) == 40
    assert np.array_equal(frames, list(open_frames(tmp_path / "film.ts")))


def test_colours_come_over_the_network(serve, recording):
    frames = list(open_frames(serve(recording), stop=3).iter_colour())
    assert np.shape(frames) == (3, 48, 64, 3)


def test_patches_are_read_from_a_stream(serve, recording):
    assert read_patches(serve(recording), frame_size=None, patch_size=8, start=5, stop=25).values.shape == (20, 64)


@pytest.mark.parametrize("reader", [list, lambda stream: next(iter(stream))])
def test_the_second_reading_is_refused(serve, recording, reader):
    address = serve(recording)
    stream = open_frames(address)
    part = stream.head(5)
    reader(stream)
    for again in (stream, part):
        for read in (iter, lambda stream: stream.iter_colour()):
            with pytest.raises(FrameSourceError, match=r"film\.ts can be read only once, .* record it to a file first"):
                read(again)
    assert len(list(open_frames(address))) == 40


def test_passwords_are_not_shown(serve, recording):
    address = serve(recording).replace("http://", "http://user:secret@") + "?key=hidden"
    stream = open_frames(address)
    assert stream.name == address.replace("user:secret@", "").removesuffix("?key=hidden")
    assert "secret" not in repr(stream)
    with pytest.raises(FrameSourceError, match=r"^http://127\.0\.0\.1:1/film cannot") as caught:
        open_frames("http://user:secret@127.0.0.1:1/film?key=hidden")
    assert "secret" not in str(caught.value)


def test_a_stream_that_breaks_says_how_far_it_came(serve, recording):
    stream = open_frames(serve(recording[: len(recording) // 2], promise=len(recording)))
    frames = []
    with pytest.raises(FrameSourceError, match=r"film\.ts broke off \(.*\): \d+ frames could be read; open it again"):
        frames.extend(stream)


def test_a_stream_that_falls_silent_is_given_up(serve, recording, monkeypatch):
    monkeypatch.setattr(video, "PATIENCE", 0.3)
    over = threading.Event()
    stream = open_frames(serve(recording[: len(recording) // 2], promise=len(recording), then=over.wait))
    try:
        with pytest.raises(FrameSourceError, match=r"broke off \(no data for 0\.3 seconds\): \d+ frames"):
            list(stream)
    finally:
        over.set()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", r"ends before its first frame|cannot be opened"), (b"\0" * 5000, r"cannot be opened as a video")],
)
def test_what_is_sent_must_be_a_film(serve, content, message):
    with pytest.raises(FrameSourceError, match=message):
        open_frames(serve(content))


def test_an_address_where_nothing_is_sent_is_refused():
    with pytest.raises(FrameSourceError, match=r"127\.0\.0\.1:1/film\.ts cannot be opened .*is the address right"):
        open_frames("tcp://127.0.0.1:1/film.ts")


def test_a_camera_that_is_not_there_is_one_sentence():
    message = r"^camera:97 cannot be opened as a video \(No such file or directory\); is it plugged in, .*\?$"
    with pytest.raises(FrameSourceError, match=message):
        open_frames("camera:97")
    with pytest.raises(FrameSourceError, match="camera:front is not the number of a camera"):
        open_frames("camera:front")


class Device:
    """A film behind the interface of a camera, which has no picture ready every other time."""

    def __init__(self, path):
        self.container = av.open(path)
        self.streams, self.format = self.container.streams, SimpleNamespace(name="v4l2")
        self.packets = None
        self.asked = 0

    def demux(self, stream):
        self.packets = self.packets or self.container.demux(stream)
        while True:
            self.asked += 1
            if self.asked % 2:
                raise BlockingIOError
            yield next(self.packets)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.container.close()


@pytest.fixture
def device(tmp_path, recording, monkeypatch):
    """A camera, and what it was opened with."""
    (tmp_path / "film.ts").write_bytes(recording)
    camera = Device(tmp_path / "film.ts")

    def open_device(address, **options):
        camera.opened = (address, options["format"], options["options"])
        return camera

    monkeypatch.setattr(av, "open", open_device)
    found = [("mic", ["audio"]), ("first", ["video"]), ("second", ["video"])]
    devices = [SimpleNamespace(name=name, media_types=kinds) for name, kinds in found]
    monkeypatch.setattr(av, "enumerate_input_devices", lambda format: devices, raising=False)
    return camera


@pytest.mark.parametrize(
    ("platform", "opened"),
    [
        ("linux", ("/dev/video1", "v4l2", {})),
        ("darwin", ("1", "avfoundation", {"framerate": "30"})),
    ],
)
def test_cameras_are_opened_as_the_system_wants(device, monkeypatch, platform, opened):
    monkeypatch.setattr(streams.sys, "platform", platform)
    camera = open_frames("camera:1", stop=10)
    assert device.opened == opened
    assert camera.name == "camera:1"
    assert camera.shape == (48, 64)
    assert len(list(camera)) == 10


def test_cameras_that_no_system_knows_are_refused(device, monkeypatch):
    monkeypatch.setattr(streams.sys, "platform", "plan9")
    with pytest.raises(FrameSourceError, match=r"not on plan9; .* open_stream"):
        open_frames("camera:0")


def test_a_camera_that_never_has_a_picture_is_given_up(device, monkeypatch):
    monkeypatch.setattr(video, "PATIENCE", 0.05)

    def never(stream):
        raise BlockingIOError
        yield

    monkeypatch.setattr(device, "demux", never)
    with pytest.raises(FrameSourceError, match=r"no frame could be decoded \(no data for 0\.05 seconds\)"):
        open_frames("camera:0")


@pytest.mark.parametrize("kind", [iter, list, lambda frames: (frame for frame in frames)])
def test_any_iterable_is_a_stream(moving, kind):
    stream = open_stream(kind(moving), name="microscope", fps=12.5)
    assert (stream.name, stream.shape, stream.fps, stream.n_frames) == ("microscope", (48, 64), 12.5, None)
    assert np.array_equal(list(stream), list(open_frames(moving)))
    with pytest.raises(FrameSourceError, match="microscope can be read only once"):
        list(stream)


def test_generators_are_asked_for_no_frame_too_many():
    asked = []

    def camera():
        for index in range(100):
            asked.append(index)
            yield np.full((4, 4, 3), index, dtype=np.uint8)

    stream = open_frames(camera(), stop=3)
    assert asked == [0]
    assert [round(float(frame[0, 0]) * 255) for frame in stream] == [0, 1, 2]
    assert asked == [0, 1, 2]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (np.zeros((4, 5)), "stream: frame 1 is 4 x 5 pixels, but the first is 4 x 4"),
        (np.zeros(4), r"stream: frame 1 has shape \(4,\); a frame is \(height, width\)"),
        (np.zeros((4, 4), dtype=int), "stream: frame 1 has dtype int64"),
        (np.full((4, 4), np.nan), "stream: frame 1 holds NaN"),
    ],
)
def test_wrong_frames_are_named(second, message):
    with pytest.raises(FrameSourceError, match=message):
        list(open_stream([np.zeros((4, 4)), second]))


def test_a_stream_needs_a_first_frame():
    with pytest.raises(FrameSourceError, match="stream ends before its first frame"):
        open_stream([])
    with pytest.raises(FrameSourceError, match=r"frame 0 has shape \(4,\)"):
        open_stream(np.zeros((3, 4)))
