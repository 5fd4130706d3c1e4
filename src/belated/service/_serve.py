"""Start the service: open the store, create the models, listen."""

from __future__ import annotations

import gc
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import uvicorn

from belated._util.shown import escape, mask
from belated.decisions import ModelSettings
from belated.decisions._store import open_store
from belated.errors import InvalidInputError
from belated.service._app import make_app
from belated.service._config import load_models
from belated.service._connection import Connection
from belated.service._keys import Keyring
from belated.service._log import log_lines
from belated.service._service import Service

DRAIN = 30
"""Seconds that open requests get to finish when the service stops."""
BACKLOG = 512
"""Backlog of connections waiting to be accepted."""
SWITCH = 0.0005
"""Interpreter switch interval in seconds, so that a computing thread does not hold up those that answer."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_service(store: str, config: Path | None, keys: Path | None, host: str) -> Service:
    """Check all arguments, then open the store; after an error nothing stays open."""
    ring = Keyring(path=keys)
    if not ring and not is_loopback(host):
        raise InvalidInputError(
            f"host must be a loopback address without keys, got {host!r}: create a key with "
            "`belated decisions new-key` and pass its file as --keys"
        )
    settings: Mapping[str, ModelSettings] = {} if config is None else load_models(config)
    opened = open_store(store)
    try:
        return Service(opened, settings, keys=ring)
    except BaseException:
        opened.close()
        raise


def listen(host: str, port: int) -> socket.socket:
    """Bind the address before anything is opened; clients wait in the backlog until the service is up.

    Two sockets can bind the same address as long as neither listens, so it is taken only once this one listens.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        taken.close()
        why = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"host and port must be a free address, got {host}:{port}: {why}") from None
    return taken


def serve(
    store: str,
    config: Path | None,
    *,
    host: str,
    port: int,
    keys: Path | None = None,
    hosts: Sequence[str] = (),
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve until stopped; then answer waiting requests and close the store."""
    log_lines()
    with listen(host, port) as address:
        service = make_service(store, config, keys, host)
        names = [*hosts, host] if hosts or not service.keys else ()
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(service, hosts=names),
                http=Connection,
                log_config=None,
                log_level="error",  # no line per malformed request: anyone could fill the disk with them
                access_log=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=DRAIN,
                server_header=False,
                proxy_headers=False,  # the client's address is not used
                ws="none",
            )
        )
        for name in ("SIGTERM", "SIGHUP"):
            # uvicorn shuts down gracefully on SIGTERM and raises the signal again at the end: by then all is done, and
            # the exit is a success. A closed terminal sends SIGHUP.
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), server.handle_exit)
        named = f"[{host}]" if ":" in host else host
        what = escape(", ".join(service.models)) or "no model yet"
        tell(f"serving {what} from {mask(store)} at http://{named}:{port}")
        gc.collect()
        gc.freeze()  # long-lived objects: keep the garbage collector from traversing them repeatedly
        sys.setswitchinterval(SWITCH)
        server.run(sockets=[address])
