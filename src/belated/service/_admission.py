"""Admission control: same-origin browser requests only, for known host names, with keys that have the scope."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belated.service._service import Service

Headers = Iterable[tuple[bytes, bytes]]

LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Host names of the loopback interface."""


class RejectedError(Exception):
    """A request that is rejected before its body is parsed."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def name_of(host: str) -> str:
    """Return the host name in a Host header, without the port.

    >>> name_of("Localhost:8080"), name_of("[::1]:8080"), name_of("::1")
    ('localhost', '[::1]', '[::1]')
    """
    host = host.lower()
    return f"[{host}]" if host.count(":") > 1 and "[" not in host else re.sub(r":\d*$", "", host)


@lru_cache(maxsize=64)
def _name(host: bytes) -> str:
    return name_of(host.decode("latin-1"))


def check_page(method: str, headers: Headers, hosts: frozenset[str] | None) -> None:
    """Raise RejectedError for cross-site requests from a browser, or if the host name is not one of `hosts`.

    A browser can reach services on the loopback interface, and any page can make it send requests there. The headers
    Origin and Sec-Fetch-Site, which a page cannot change, tell where they come from. DNS rebinding makes a foreign page
    same-origin, though; only the name in Host gives that away.
    """
    host, origin, site, mode = b"", b"", b"", b""
    for name, value in headers:
        if name == b"host":
            if host:
                raise RejectedError(400, "there must be exactly one Host header, got two")
            host = value
        elif name == b"origin":
            origin = value
        elif name == b"sec-fetch-site":
            site = value
        elif name == b"sec-fetch-mode":
            mode = value
    if hosts is not None and host and (named := _name(host)) not in hosts:
        listed = ", ".join(sorted(hosts))
        raise RejectedError(421, f"the host name must be one of {listed}, got {named[:80]!r}; see --allow-host")
    if origin and origin.partition(b"://")[2].lower() != host.lower():
        raise RejectedError(403, "cross-site requests are rejected: Origin must match Host")
    follows_link = method == "GET" and mode == b"navigate"  # the response is shown to the user, not to the page
    if site not in (b"", b"none", b"same-origin") and not follows_link:
        raise RejectedError(403, "cross-site requests are rejected: see Sec-Fetch-Site")


def admit(service: Service, scope: str, headers: Headers) -> None:
    """Raise RejectedError unless the key of a request allows it."""
    if not service.keys:
        return
    given: str | None = None
    for name, value in headers:
        if name == b"x-api-key" and value:
            given = value.decode("latin-1")
            break
        if name == b"authorization":
            scheme, _, bearer = value.decode("latin-1").partition(" ")
            given = bearer.strip() if scheme.lower() == "bearer" else given
    allowed = service.keys.scopes(given)
    if allowed is None:
        sentence = "a key is required" if given is None else "the key is unknown: send a valid one"
        raise RejectedError(401, f"{sentence}, as the header X-API-Key or Authorization: Bearer")
    if scope not in allowed and "admin" not in allowed:
        raise RejectedError(403, f"this key does not have the scope {scope!r}")
