"""Pages of other sites, in a browser on the machine of a service without keys: none of them reads or writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attacks.serving import CONTEXT, DECIDE, Server, served
from attacks.tally import Tally

#: What a browser sends of its own accord, without having asked whether it may; a Blob without a type, an ArrayBuffer
#: and a beacon have no type at all.
TYPES = (None, "", "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data")
#: What the page is called, and what the browser says of it.
PAGES = (
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:3000"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    {"origin": "http://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
)
#: Names of others that lead here.
NAMES = ("rebound.example", "127.0.0.1.nip.io", "localhost.example", "127.0.0.2.evil.example", "evil.example.")
WRITES = (DECIDE, f"{DECIDE}/batch", "/v1/models/ads/feedback", "/v1/models/ads/cancel")
READS = ("/", "/v1/models", "/v1/models/ads", "/metrics", "/openapi.json", "/health/ready")


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Send what pages can send: all of it, then so many mixtures at random."""
    with served(folder / "service") as server:
        for kind in TYPES:
            with tally.attempt(f"a body of type {kind!r}"):
                headers = {} if kind is None else {"content-type": kind}
                _refused(server, "POST", DECIDE, headers)
        for path in WRITES:
            for page in PAGES:
                with tally.attempt(f"JSON to {path} from a page with {page}"):
                    _refused(server, "POST", path, {"content-type": "application/json", **page})
        for name in NAMES:
            with tally.attempt(f"a page of {name}, whose name leads here"):
                own = {"host": f"{name}:{server.port}", "origin": f"http://{name}:{server.port}"}
                headers = {"content-type": "application/json", "sec-fetch-site": "same-origin", **own}
                _refused(server, "POST", DECIDE, headers)
                assert {server.ask("GET", path, headers={"host": own["host"]}).code for path in READS} == {421}
        for _ in range(tries):
            if not tally.left():
                break
            _mix(server, rng, tally)
        with tally.attempt("what is not of another site"):
            good = {"content-type": "application/json"}
            for more in ({}, {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin"}):
                assert server.ask("POST", DECIDE, CONTEXT, {**good, **more}).code == 200
            assert server.ask("GET", "/", headers={"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}).code == 200


def _refused(server: Server, method: str, path: str, headers: dict[str, str]) -> None:
    """Send a request, which must be refused and change nothing."""
    before = server.decisions()
    code = server.ask(method, path, CONTEXT, headers).code
    assert server.decisions() == before, "a page has made a decision"
    assert 400 <= code < 500, code


def _mix(server: Server, rng: np.random.Generator, tally: Tally) -> None:
    headers: dict[str, str] = {"content-type": "application/json"}
    if rng.random() < 0.5:
        headers["host"] = f"{rng.choice(NAMES)}:{server.port}"
    headers |= PAGES[rng.integers(len(PAGES))]
    method = str(rng.choice(["POST", "PUT", "OPTIONS", "DELETE", "PATCH"]))
    path = str(rng.choice([*WRITES, "/v1/models/ads"]))
    with tally.attempt(f"{method} {path} with {headers}"):
        _refused(server, method, path, headers)
