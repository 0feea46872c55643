"""The server of the playground: one page, and answers in JSON, on this machine only.

A request is answered if its ``Host`` is this server's, if a page of another origin did not make it, and if it
has the token that the terminal showed. The page loads nothing from elsewhere.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

from fccomodel.app import errors
from fccomodel.app.playground import PORT, answers, running
from fccomodel.app.tracebacks import DEBUG
from fccomodel.core.diagnostics import FccoError

HOST = "127.0.0.1"
LARGEST_REQUEST = 400_000  # bytes
#: What the page may load and run: its own script and style, answers of this server, and nothing else.
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Where the page has its token.
TOKEN_PLACE = "{{token}}"
#: Where the page has the nonce of its script.
NONCE_PLACE = "{{nonce}}"


class Playground(ThreadingHTTPServer):
    """The server with its token and its solve; ``address`` is what a browser opens."""

    daemon_threads = True

    def __init__(self, port: int = PORT):
        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.job: running.Job | None = None
        #: One model is analysed at a time, and one solve begun.
        self.working = threading.Lock()

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of the page."""
        return tuple(f"http://{host}:{self.server_port}" for host in (HOST, "localhost"))

    @property
    def address(self) -> str:
        """The address of the page with its token."""
        return f"{self.origins[0]}/?token={self.token}"

    def has_token(self, given: str) -> bool:
        """Whether a token is this server's; the time does not tell how much of it is right."""
        return secrets.compare_digest(given.encode(), self.token.encode())

    def server_close(self) -> None:
        """End the solve, and free the port."""
        if self.job is not None:
            self.job.stop()
        super().server_close()


def page(token: str, nonce: str) -> str:
    """The page; without a token it asks for one."""
    text = files("fccomodel.app.playground").joinpath("page.html").read_text(encoding="utf-8")
    return text.replace(TOKEN_PLACE, token).replace(NONCE_PLACE, nonce)


# ------------------------------------------------------------------------------------------- answers
def _examples(server: Playground, given: Mapping[str, Any]) -> Any:
    return answers.examples()


def _check(server: Playground, given: Mapping[str, Any]) -> Any:
    with server.working:
        return answers.checked(_text(given, "text"))


def _explain(server: Playground, given: Mapping[str, Any]) -> Any:
    with server.working:
        try:
            return answers.explained(_text(given, "text"))
        except FccoError as error:
            return {"error": str(error)}


def _solve(server: Playground, given: Mapping[str, Any]) -> Any:
    """Begin a solve; an earlier one is ended."""
    seconds = min(max(float(given.get("seconds", 10)), 1.0), running.LONGEST_SOLVE)
    request = {"text": _text(given, "text"), "example": _text(given, "example"), "seconds": seconds}
    with server.working:
        if server.job is not None:
            server.job.stop()
        server.job = running.Job(request)
    return {}


def _progress(server: Playground, given: Mapping[str, Any]) -> Any:
    """The lines of the solve that the page does not have yet."""
    if server.job is None:
        return {"lines": [], "running": False}
    still = server.job.running  # first, so that no line comes after "not running"
    return {"lines": server.job.since(int(given.get("since", 0))), "running": still}


def _stop(server: Playground, given: Mapping[str, Any]) -> Any:
    if server.job is not None:
        server.job.stop()
    return {}


def _text(given: Mapping[str, Any], name: str) -> str:
    """A text of the request. ValueError for another value."""
    value = given.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def _no_number(constant: str) -> NoReturn:
    """ValueError: JSON has no NaN and no Infinity, which ``json`` reads."""
    raise ValueError(f"{constant} is no number")


ANSWERS: Mapping[str, Callable[[Playground, Mapping[str, Any]], Any]] = {
    "/api/examples": _examples,
    "/api/check": _check,
    "/api/explain": _explain,
    "/api/solve": _solve,
    "/api/progress": _progress,
    "/api/stop": _stop,
}


def defect(error: Exception) -> str:
    """The text of a defect of this package, with a request to report it."""
    return str(FccoError([errors.defect(error, DEBUG)]))


# ------------------------------------------------------------------------------------------ requests
class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Playground
    timeout = 30  # seconds without a byte
    server_version = "fccomodel"
    sys_version = ""

    def do_GET(self) -> None:
        """The page: whole for who has the token, else one that asks for it."""
        if not self._is_of_this_server():
            return self._refuse(HTTPStatus.FORBIDDEN, "another host")
        try:
            place = urlsplit(self.path)
        except ValueError as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        if place.path != "/":
            return self._refuse(HTTPStatus.NOT_FOUND, "no such page")
        token = parse_qs(place.query).get("token", [""])[0]
        nonce = secrets.token_urlsafe(16)
        shown = page(self.server.token if self.server.has_token(token) else "", nonce)
        self._send(HTTPStatus.OK, shown.encode(), "text/html; charset=utf-8", POLICY.format(nonce=nonce))

    def do_POST(self) -> None:
        """An answer in JSON, for the page alone."""
        if not self._is_of_this_server() or self.headers.get("Origin") not in self.server.origins:
            return self._refuse(HTTPStatus.FORBIDDEN, "another origin")
        if not self.server.has_token(self.headers.get("X-Token", "")):
            return self._refuse(HTTPStatus.FORBIDDEN, "another token")
        answer = ANSWERS.get(self.path)
        if answer is None:
            return self._refuse(HTTPStatus.NOT_FOUND, "no such answer")
        try:
            given = self._given()
            found = answer(self.server, given)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, defect(error))
        self._send(HTTPStatus.OK, json.dumps(found).encode(), "application/json", "default-src 'none'")

    def _is_of_this_server(self) -> bool:
        """Whether the browser was asked for this server by its own name (no DNS rebinding)."""
        return f"http://{self.headers.get('Host', '')}" in self.server.origins

    def _given(self) -> Mapping[str, Any]:
        """The body, an object of JSON. ValueError for another one, or a large one."""
        size = int(self.headers.get("Content-Length", "0"))
        if not 0 < size <= LARGEST_REQUEST:
            raise ValueError(f"a request has at most {LARGEST_REQUEST:,} bytes")
        given = json.loads(self.rfile.read(size), parse_constant=_no_number)
        if not isinstance(given, dict):
            raise ValueError("a request is an object")
        return given

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._send(status, why.encode(), "text/plain; charset=utf-8", "default-src 'none'")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):  # the page was closed
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal shows no requests."""
