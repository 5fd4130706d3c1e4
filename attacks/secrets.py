"""What must not get out, or in: passwords, files that others may read, revoked keys, lines that are not the log's."""

from __future__ import annotations

import http.client
import signal
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np

from attacks.serving import CONTEXT, DECIDE, Server, free_port, served
from attacks.tally import Tally
from belated._util.shown import escape, mask
from belated.service._keys import add_key

JSON = {"content-type": "application/json"}
ODD = ("\0", "\x1b[2J", "a\r\nb", "\u202e", "\x9b", "\ud7ff\u2028", "\x7f")
SETTINGS = b'{"silence": {"kind": "unknown"}, "actions": ["a"]}'


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Look at files, messages, keys and the log; so many passwords at random."""
    _passwords(tries, folder, rng, tally)
    with served(folder / "open") as server:
        for path in sorted(server.folder.glob("d.db*")):
            with tally.attempt(f"the rights of {path.name}"):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, oct(path.stat().st_mode)
        for name in ODD:
            with tally.attempt(f"a model called {name!r}, and a decision"):
                _odd(server, quote(name, safe=""))
        with tally.attempt("the log after all that"):
            told = server.log()
            assert all(each.isprintable() for line in told.split("\n") for each in line), ascii(told[-300:])
        with tally.attempt("SIGHUP"):
            made = [server.ask("POST", DECIDE, CONTEXT, JSON).code for _ in range(20)]
            assert made == [200] * 20
            assert server.stop(signal.SIGHUP) == 0
    _keys(folder, tally)


def _passwords(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    signs = list("abcXYZ0189@:/?#[]%&=+ ._-~!$'()*,;")
    for i in range(tries):
        if not tally.left():
            return
        secret = "S3" + "".join(rng.choice(signs, size=8))
        address = f"postgresql://me:{quote(secret, safe='') if rng.random() < 0.5 else secret}@127.0.0.1:1/db"
        with tally.attempt(f"a message with {address!r}"):
            shown = escape(mask(f"cannot use {address} now"))
            assert "S3" not in shown, shown
        if i < 3:
            with tally.attempt(f"a start with {address!r}"):
                command = [
                    sys.executable,
                    "-m",
                    "belated._cli",
                    "serve",
                    "--store",
                    address,
                    "--port",
                    str(free_port()),
                ]
                told = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
                assert told.returncode not in (0, 1), told.returncode
                assert "S3" not in told.stdout + told.stderr, told.stderr


def _odd(server: Server, name: str) -> None:
    try:
        codes = [
            server.ask("PUT", f"/v1/models/{name}", SETTINGS, JSON).code,
            server.ask("GET", f"/v1/decisions/{name}").code,
            server.ask("POST", f"/v1/models/{name}/decide", CONTEXT, JSON).code,
        ]
    except http.client.HTTPException as error:
        raise AssertionError(f"no answer: {error}") from None
    assert all(400 <= code < 500 for code in codes), codes


def _keys(folder: Path, tally: Tally) -> None:
    (folder / "closed").mkdir()
    path = folder / "closed" / "keys.toml"
    first, second = add_key(path, "first", ["decide"]), add_key(path, "second", ["decide"])
    with tally.attempt("the rights of a file of keys"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    with served(folder / "closed", "--keys", "keys.toml") as server:

        def code(key: str) -> int:
            return server.ask("POST", DECIDE, CONTEXT, {**JSON, "x-api-key": key}).code

        with tally.attempt("two keys, one of them revoked while the service runs"):
            assert (code(first), code(second), code("other")) == (200, 200, 401)
            path.write_text(
                "[keys.second]" + path.read_text(encoding="utf-8").partition("[keys.second]")[2], encoding="utf-8"
            )
            assert (code(first), code(second)) == (401, 200)
        with tally.attempt("no key in what the service has written"):
            written = [each.read_bytes() for each in server.folder.iterdir() if each.is_file()]
            assert not any(key.encode() in content for key in (first, second) for content in written)
