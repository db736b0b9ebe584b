"""`psmt.live`: the page in an output cell of a notebook."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Self

from psmt.data import Spec
from psmt.live.serving import LiveServer, open_session
from psmt.model import PSMT
from psmt.video import FramePSMT

_NOTEBOOKS = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "vscode-webview:")
"""Pages that show output cells."""


class LivePage:
    """A page that runs beside the notebook; shown as a frame where a cell ends with it. `stop` ends it."""

    def __init__(self, server: LiveServer, height: int) -> None:
        self._server = server
        self._height = height
        self.address = server.address
        """What to open in a browser of its own."""

    def stop(self) -> None:
        """End the server and the model."""
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"LivePage({self.address!r})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.address)}" title="psmt live" allow="camera" '
            f'width="100%" height="{self._height}" style="border:0;border-radius:12px"></iframe>'
        )


def live(
    model_or_source: FramePSMT | PSMT | Spec = "builtin:glide",
    *,
    source: Spec = "builtin:glide",
    size: int | None = None,
    horizon: int = 1,
    device: str = "cpu",
    save_to: Path | str | None = None,
    loop: bool = True,
    port: int = 0,
    height: int = 900,
) -> LivePage:
    """Return a page that shows a source and what the model expects of it, as ``psmt live`` does.

    It runs in threads of this process, on this machine only, until its `stop` is called or the process ends.

    Parameters
    ----------
    model_or_source : FramePSMT, PSMT, or a source
        A source as `psmt.open_frames` takes it, or 'camera', the browser's own. A fitted model goes on from what it has
        learned, on a copy: a `FramePSMT` of square frames, or a `PSMT` of the patch at their centre.
    source : source
        What a given model looks at.
    size, horizon, device, loop, port
        As the options of ``psmt live``; port 0 is any that is free.
    save_to : path, optional
        The file that the page may save the model to.
    height : int
        Of the output cell, in pixels.

    Returns
    -------
    LivePage
        Shows itself where a cell ends with it; `address` for another browser, `stop` to end it.

    Raises
    ------
    FrameSourceError
        When the source cannot be read.

    Examples
    --------
    >>> import psmt
    >>> with psmt.live("builtin:glide?frames=50", size=32) as page:
    ...     page.address
    'http://...'
    """
    given = isinstance(model_or_source, FramePSMT | PSMT)
    session = open_session(
        source if given else model_or_source,
        size=size,
        horizon=horizon,
        device=device,
        model=model_or_source if isinstance(model_or_source, FramePSMT | PSMT) else None,
        save_to=None if save_to is None else Path(save_to),
        loop=loop,
    )
    server = LiveServer(session, port=port, framed_by=_NOTEBOOKS)
    server.start()
    return LivePage(server, height)
