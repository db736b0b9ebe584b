"""The command `psmt live`."""

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from psmt.errors import PSMTError

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
            help="Side of the frame in pixels, after its centred square is shrunk. Left out: 200, or the whole square "
            "of a smaller film.",
            metavar="INT",
            show_default=False,
        ),
    ] = None
    horizon: Annotated[int, Parameter(help="Frames to look ahead at first, 1 to 10; the page has a slider.")] = 1
    loop: Annotated[bool, Parameter(help="Repeat a film at its end.")] = True
    device: Annotated[str, Parameter(help="Where the models compute: cpu, or cuda.", metavar="cpu|cuda")] = "cpu"
    model: Annotated[
        Path | None,
        Parameter(
            help="Saved model to start from: a FramePSMT, or a PSMT for the centre patch.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    save: Annotated[
        Path | None,
        Parameter(
            help="File that the page may save the model to. Left out: nothing can be saved.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    host: Annotated[str, Parameter(help="Address to listen on. All but loopback need the token that is printed.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Parameter(help="Port to listen on; 0 takes a free one.")] = 8765
    browser: Annotated[bool, Parameter(help="Open the page in a browser.")] = True


def live(
    source: Annotated[str, Parameter(help=_SOURCE)] = "builtin:glide",
    /,
    *,
    options: Annotated[LiveOptions, Parameter(name="*")] = LiveOptions(),  # noqa: B008  which cannot change
) -> None:
    """See a camera or film and, beside it, what the model expects to come next, while it learns.

    Opens a page in the browser. It listens on this machine only; with another --host it prints an address with a token,
    which is required. Ctrl-C ends it.
    """
    try:
        from psmt.live.serving import LiveServer, open_session
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "websockets"):
            raise
        raise PSMTError(f"psmt live needs {error.name}; install it with: pip install 'psmt[live]'") from error
    from psmt.engines import engine_for
    from psmt.model import PSMT
    from psmt.persistence import load_model
    from psmt.video import FramePSMT

    engine_for(options.device)
    model = None if options.model is None else load_model(options.model, FramePSMT, PSMT, device=options.device)
    session = open_session(
        source,
        size=options.size,
        horizon=options.horizon,
        device=options.device,
        model=model,
        save_to=options.save,
        loop=options.loop,
    )
    server = LiveServer(session, host=options.host, port=options.port)
    print(f"psmt live: {session.feed.name} at {server.address}\npsmt live: Ctrl-C ends it", flush=True)
    server.run(browser=options.browser)
    print("psmt live: ended", flush=True)
    # Freeing what the compiler has made would delay the prompt for most of a second.
    gc.freeze()
