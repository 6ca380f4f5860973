"""Who may use the desk: a secret in the address, then a cookie; requests of other sites fail."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest

MAX_SESSIONS = 1_000
MAX_NAME = 60  # characters
TICKET_BYTES = 24

HEADERS = {
    # no inline style or script, nothing from elsewhere, and no page of others around ours
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, browsers hide the origin of forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response."""


@dataclass
class Session:
    """One browser.

    Args:
        who: The name that its answers carry.
        id: Names the session in the label file; no secret.
        form_token: Must be in every form that it sends.
    """

    who: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(TICKET_BYTES))

    def rename(self, name: str) -> None:
        """Use another name from now on; an empty one changes nothing."""
        self.who = " ".join(name.split())[:MAX_NAME] or self.who


class Access:
    """Checks requests to a server on this machine.

    Other users of the machine do not know the token. Pages of other sites can make a browser send
    requests, but with another `Origin`, without the cookie, which is `SameSite=Strict`, and without
    the token of the form. A name that resolves to 127.0.0.1 fails by its `Host`.

    Args:
        port: The port of the server.
        who: The name of new sessions.
    """

    def __init__(self, port: int, who: str) -> None:
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self.who = who
        self.token = secrets.token_urlsafe(TICKET_BYTES)
        self.cookie = f"evengraph-desk-{port}"  # cookies of one host are shared by all ports
        self._tickets: set[str] = set()
        self._sessions: dict[str, Session] = {}

    @property
    def address(self) -> str:
        """The address to open; good for any number of browsers."""
        return f"http://{self.hosts[0]}/?token={self.token}"

    def one_time_address(self) -> str:
        """An address for one browser: other users can read what programs are started with."""
        ticket = secrets.token_urlsafe(TICKET_BYTES)
        self._tickets.add(ticket)
        return f"http://{self.hosts[0]}/?token={ticket}"

    def knows_host(self, host: str) -> bool:
        """Whether a request was meant for this server."""
        return host.lower() in self.hosts

    def enter(self, token: str) -> str | None:
        """The cookie of a new session; None if the token is wrong."""
        given = token.encode()
        if not compare_digest(given, self.token.encode()):
            if token not in self._tickets:
                return None
            self._tickets.discard(token)
        if len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(TICKET_BYTES)
        self._sessions[secret] = Session(self.who)
        return secret

    def session(self, cookies: Mapping[str, str]) -> Session | None:
        """The session of a request."""
        return self._sessions.get(cookies.get(self.cookie, ""))

    def allows_post(self, session: Session, headers: Mapping[str, str], form_token: str) -> bool:
        """Whether a form came from a page of ours."""
        origin = headers.get("origin")
        if origin is not None and origin.lower().removeprefix("http://") not in self.hosts:
            return False
        return compare_digest(form_token.encode(), session.form_token.encode())
