"""Access control of the server: checks of the headers Host and Origin and of the token, and security headers.

Other pages in the same browser can send requests to this server. With DNS rebinding, such requests carry another host
name, which the check of `Host` rejects. Browsers allow any page to open web sockets, so `Origin` is checked too.
"""

from __future__ import annotations

import ipaddress
import socket
from hmac import compare_digest
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Guard:
    """ASGI middleware that accepts requests from the page of this server and refuses all others.

    `host` is the address that the server listens on. If there is a `token`, clients must send it once. They receive a
    cookie, which they must send from then on.
    """

    def __init__(self, app: ASGIApp, *, host: str, token: str | None = None) -> None:
        self._app = app
        self._loopback = is_loopback(host)
        own = [] if self._loopback else [host, socket.gethostname(), socket.getfqdn()]
        self._names = {name.lower() for name in ("127.0.0.1", "localhost", "::1", *own)}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with a reason."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        reason = self._refusal(request)
        host = request.headers["host"] if reason is None else ""
        secured = self._secured(send, host)
        if reason is None and scope["type"] == "http" and scope["path"] == "/" and self._sends_token(request):
            # Redirect to the page without the token, which keeps it out of the browser's history.
            response = RedirectResponse("/", 303)
            response.set_cookie(_cookie_name(host), str(self._token), httponly=True, samesite="strict", path="/")
            await response(scope, receive, secured)
        elif reason is None:
            await self._app(scope, receive, secured)
        elif scope["type"] == "http":
            await PlainTextResponse(f"Refused: {reason}.\n", 403)(scope, receive, secured)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": reason})

    def _refusal(self, request: HTTPConnection) -> str | None:
        """Return the reason why a request is refused, or None if it is accepted."""
        headers, hosts = request.headers, request.headers.getlist("host")
        if len(hosts) != 1 or not self._is_own_name(hosts[0]):
            return "the Host is not a name of this server"
        for origin in headers.getlist("origin"):
            scheme, _, place = origin.lower().partition("://")
            if scheme not in ("http", "https") or place != hosts[0].lower():
                return "the request comes from a page of another Origin"
        other_site = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        if other_site and headers.get("sec-fetch-mode") != "navigate":
            return "the request comes from a page of another Origin"
        if request["type"] == "http" and request["method"] not in ("GET", "HEAD"):
            return "only GET is answered"
        cookie = request.cookies.get(_cookie_name(hosts[0]))
        if self._token is not None and not (self._sends_token(request) or self._is_token(cookie)):
            return "the token is missing or wrong; open the address that psmt live printed"
        return None

    def _is_own_name(self, host: str) -> bool:
        """Return whether a Host header names this server. Its port may differ, for example behind an SSH tunnel."""
        try:
            name = (_split(host).hostname or "").lower()
            if name in self._names:
                return True
            # DNS rebinding needs a name, so a numeric address is safe.
            return not self._loopback and bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    def _sends_token(self, request: HTTPConnection) -> bool:
        return self._is_token(request.query_params.get("token"))

    def _is_token(self, given: str | None) -> bool:
        return bool(given and self._token) and compare_digest(str(given).encode(), str(self._token).encode())

    def _secured(self, send: Send, host: str) -> Send:
        policy = (
            f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
            f"connect-src 'self'{f' ws://{host} wss://{host}' if host else ''}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_SECURITY_HEADERS | {"content-security-policy": policy})
            await send(message)

        return send_secured


def _cookie_name(host: str) -> str:
    # Browsers share cookies between ports, and two servers of one machine must not overwrite each other's.
    return f"psmt-live-{_split(host).port or 80}"


def _split(host: str) -> SplitResult:
    """Return the name and port in a Host header. Raise ValueError if the header is not valid."""
    parts = urlsplit(f"//{host}")
    if parts.netloc != host or parts.username is not None or not (parts.port is None or parts.port):
        raise ValueError(f"{host!r} is not a host")
    return parts
