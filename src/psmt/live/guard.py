"""Who may talk to the server: checks of Host, Origin and token, and headers that bind the page.

A browser runs pages of strangers beside ours. DNS rebinding lets such a page reach this server under a name of its own:
`Host` tells. A socket is open to all origins unless the server looks: `Origin` tells.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names under which only this machine reaches itself."""


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Guard:
    """ASGI middleware that lets through what the person who started the server would.

    Parameters
    ----------
    app : ASGI application
    host : str
        The address that is listened on.
    token : str, optional
        The secret that a client must know; None asks for none.
    framed_by : sequence of str
        Origins whose pages may show ours in a frame.
    """

    def __init__(self, app: ASGIApp, *, host: str, token: str | None = None, framed_by: Sequence[str] = ()) -> None:
        self._app = app
        self._loopback = is_loopback(host)
        own = [] if self._loopback else [host, socket.gethostname(), socket.getfqdn()]
        self._names = {name.lower() for name in (*LOOPBACK, *own)}
        self._token = token
        self._framed_by = " ".join(framed_by) or "'none'"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with a reason."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        reason = self._refusal(scope, headers)
        bound = self._bound(send, headers["host"] if reason is None else "")
        if reason is None and scope["type"] == "http" and scope["path"] == "/" and self._token_given(scope):
            await self._admitted(scope)(scope, receive, bound)
        elif reason is None:
            await self._app(scope, receive, bound)
        elif scope["type"] == "http":
            await PlainTextResponse(f"Refused: {reason}.\n", 403)(scope, receive, bound)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": reason})

    # What is refused

    def _refusal(self, scope: Scope, headers: Headers) -> str | None:
        """Return why a request is refused; None where it is not."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._knows(hosts[0]):
            return "this server does not answer to that Host"
        for origin in headers.getlist("origin"):
            scheme, _, place = origin.lower().partition("://")
            if scheme not in ("http", "https") or place != hosts[0].lower():
                return "a page of another Origin asks"
        foreign = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return "a page of another Origin asks"
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            return "only GET is answered"
        if self._token is not None and not (self._token_given(scope) or self._cookie_given(headers)):
            return "the token is missing or wrong; open the address that psmt live printed"
        return None

    def _knows(self, host: str) -> bool:
        """Whether this is a name of this server. Ports do not count: a tunnel has another."""
        try:
            name = (_split(host).hostname or "").lower()
            if name in self._names:
                return True
            # Rebinding needs a name: an address in figures leads where it says.
            return not self._loopback and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    # The token

    def _token_given(self, scope: Scope) -> bool:
        if self._token is None:
            return False
        try:
            given = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=8)
        except ValueError:
            return False
        return self._right(given.get("token", [""])[0])

    def _cookie_given(self, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name(headers.get("host", "")))
        except CookieError:
            return False
        return cookie is not None and self._right(cookie.value)

    def _right(self, given: str) -> bool:
        return self._token is not None and compare_digest(given.encode(), self._token.encode())

    @staticmethod
    def _cookie_name(host: str) -> str:
        # Cookies know no ports: two servers of one machine would overwrite each other's.
        return f"psmt-live-{_split(host).port or 80}"

    def _admitted(self, scope: Scope) -> Response:
        """The page's address without the token, which so stays out of the browser's history."""
        response = RedirectResponse("/", 303)
        assert self._token is not None
        name = self._cookie_name(Headers(scope=scope).get("host", ""))
        response.set_cookie(name, self._token, httponly=True, samesite="strict", path="/")
        return response

    # What the page is bound to

    def _bound(self, send: Send, host: str) -> Send:
        policy = (
            f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
            f"connect-src 'self'{f' ws://{host} wss://{host}' if host else ''}; base-uri 'none'; form-action 'none'; "
            f"frame-ancestors {self._framed_by}"
        )

        async def bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                headers["content-security-policy"] = policy
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers["cross-origin-resource-policy"] = "same-origin"
                headers["cross-origin-opener-policy"] = "same-origin"
                headers["permissions-policy"] = "camera=(self), microphone=(), geolocation=()"
                headers["cache-control"] = "no-store"
                message["headers"] = headers.raw
            await send(message)

        return bound


def _split(host: str) -> SplitResult:
    """Name and port of a Host header; ValueError for what is none."""
    parts = urlsplit(f"//{host}")
    if parts.netloc != host or parts.username is not None or not (parts.port is None or parts.port):
        raise ValueError(f"{host!r} is no host")
    return parts
