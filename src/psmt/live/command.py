"""The command `psmt live`, and its options."""

import gc
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from psmt.errors import PSMTError, SeriesWarning
from psmt.utils.files import shown

if TYPE_CHECKING:
    from psmt.live.session import Session

_SOURCE = (
    "A film (as for the other commands), builtin:glide, camera (the browser's own), camera:0 (one of this machine), or "
    "the address of a stream (rtsp://, http://)."
)


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """Options of `psmt live`."""

    size: Annotated[
        int | None,
        Parameter(
            help="Height in pixels to which the whole picture is shrunk. The aspect ratio stays the same. Default: at "
            "most 40,000 pixels (200 x 200, or 150 x 267), which several sources share.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    horizon: Annotated[int, Parameter(help="Frames to predict ahead, 1 to 10. A slider on the page changes it.")] = 1
    loop: Annotated[bool, Parameter(help="Repeat a film at its end.")] = True
    device: Annotated[str, Parameter(help="Where the models compute: cpu, or cuda.", metavar="cpu|cuda")] = "cpu"
    model: Annotated[
        Path | None,
        Parameter(
            help="Saved model to start from, a FramePredictor.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    save: Annotated[
        Path | None,
        Parameter(
            help="File to which the page may save the model. Without it, nothing can be saved.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    host: Annotated[str, Parameter(help="Address to listen on. Any address but loopback needs the printed token.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Parameter(help="Port to listen on; 0 takes a free one.")] = 8765
    browser: Annotated[bool, Parameter(help="Open the page in a browser.")] = True


def _described(session: "Session") -> str:
    """Return the name of a session's source, the size of its frames, and the original size if frames are reduced."""
    (height, width), (whole_height, whole_width) = session.feed.shape, session.feed.original
    reduced = "" if height == whole_height else f", reduced from {whole_width} x {whole_height}"
    return f"{session.feed.name} (the whole picture, {width} x {height} pixels{reduced})"


def live(
    source: Annotated[str, Parameter(help=_SOURCE)] = "builtin:glide",
    /,
    *others: Annotated[str, Parameter(help="Further sources, which are shown at the same time.", negative=())],
    options: Annotated[LiveOptions, Parameter(name="*")] = LiveOptions(),
) -> None:
    """Show a camera or film and the model's prediction of the next frames, while the model learns.

    The command opens a page in the browser. Only this machine can reach the page. If --host is an address that other
    machines can reach, they need the token in the printed address. Ctrl-C ends the command.
    """
    print(f"psmt live: {shown(source)}: load libraries", file=sys.stderr, flush=True)
    try:
        from psmt.live.serving import LiveServer, open_sessions
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "websockets"):
            raise
        raise PSMTError(f"psmt live needs {error.name}; install it with: pip install 'psmt[live]'") from error
    from psmt.engines import engine_for
    from psmt.video import FramePredictor

    # A patch of a film may have pixels that are constant for a while.
    warnings.simplefilter("ignore", SeriesWarning)
    engine_for(options.device)
    model = None if options.model is None else FramePredictor.load(options.model, device=options.device)
    sessions = open_sessions(
        source,
        *others,
        size=options.size,
        horizon=options.horizon,
        device=options.device,
        model=model,
        save_to=options.save,
        loop=options.loop,
    )
    server = LiveServer(*sessions, host=options.host, port=options.port)
    print(f"psmt live: {', '.join(map(_described, sessions))}, at {server.address}", flush=True)
    print("psmt live: Ctrl-C ends it", flush=True)
    server.run(browser=options.browser)
    print("psmt live: ended", flush=True)
    # Freeing the compiled code would delay the prompt for most of a second.
    gc.freeze()
