"""`psmt.live`: the live page in an output cell of a notebook."""

from __future__ import annotations

from contextlib import AbstractContextManager
from html import escape
from pathlib import Path

from psmt.data import Spec
from psmt.live.serving import LiveServer, open_session
from psmt.model import PSMT
from psmt.video import FramePSMT


class LivePage(AbstractContextManager["LivePage"]):
    """A running live page. A notebook shows it as the output of a cell; `stop` ends it.

    Attributes
    ----------
    address : str
        To open the page in another tab or browser.
    """

    def __init__(self, server: LiveServer, height: int) -> None:
        self._server = server
        self._height = height
        self.address = server.address

    def stop(self) -> None:
        """Stop the server and the model."""
        self._server.stop()

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
    """Show a source and the model's predictions on a live page, as ``psmt live`` does.

    The page runs in threads of this process and can be reached from this machine only. It ends with `LivePage.stop`, or
    with the process.

    Parameters
    ----------
    model_or_source : FramePSMT, PSMT, or a source
        A source as in `psmt.open_frames`, or 'camera' for the browser's camera. A fitted model continues to learn, on a
        copy: a `FramePSMT` of square frames, or a `PSMT` of the patch at their centre.
    source : source
        The source for a given model.
    size, horizon, device, loop, port
        As the options of ``psmt live``; port 0 takes a free port.
    save_to : path, optional
        The file that the page may save the model to.
    height : int
        Height of the output cell in pixels.

    Returns
    -------
    LivePage
        The running page. A cell that ends with it shows it.

    Raises
    ------
    FrameSourceError
        If the source cannot be read.

    Examples
    --------
    >>> import psmt
    >>> with psmt.live("builtin:glide?frames=50", size=32) as page:
    ...     page.address
    'http://...'
    """
    model = None
    if isinstance(model_or_source, FramePSMT | PSMT):
        model = model_or_source
    else:
        source = model_or_source
    session = open_session(
        source,
        size=size,
        horizon=horizon,
        device=device,
        model=model,
        save_to=None if save_to is None else Path(save_to),
        loop=loop,
    )
    # The pages of Jupyter and VS Code that show output cells.
    notebooks = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "vscode-webview:")
    server = LiveServer(session, port=port, framed_by=notebooks)
    server.start()
    return LivePage(server, height)
