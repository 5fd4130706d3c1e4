"""Start the service: open the store, make the models, listen."""

from __future__ import annotations

import gc
import ipaddress
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn

from belated.decisions import ModelSettings
from belated.decisions._store import open_store
from belated.errors import InvalidInputError
from belated.service._app import make_app
from belated.service._config import load_models
from belated.service._keys import Keyring, load_keys
from belated.service._service import Service

DRAIN = 30
"""Seconds that requests get to end when the service is told to stop."""


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
    """Check all arguments, then open the store; nothing is left open after an error."""
    ring = Keyring(load_keys(keys)) if keys is not None else Keyring()
    if not ring and not is_loopback(host):
        raise InvalidInputError(
            f"host must be a loopback address as long as there are no keys, got {host!r}: make one with "
            "`belated decisions new-key` and give the file as --keys"
        )
    settings: Mapping[str, ModelSettings] = {} if config is None else load_models(config)
    opened = open_store(store)
    try:
        return Service(opened, settings, keys=ring)
    except BaseException:
        opened.close()
        raise


def listen(host: str, port: int) -> socket.socket:
    """Bind the address before anything is opened; no connection is accepted yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
    except (OSError, UnicodeError) as error:
        taken.close()
        why = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"host and port must be an address that is free, got {host}:{port}: {why}") from None
    return taken


def serve(
    store: str,
    config: Path | None,
    *,
    host: str,
    port: int,
    keys: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> None:
    """Serve until stopped; then answer what is waiting, and close the store."""
    with listen(host, port) as address:
        service = make_service(store, config, keys, host)
        named = f"[{host}]" if ":" in host else host
        tell(f"serving {', '.join(service.models) or 'no model yet'} from {store} at http://{named}:{port}")
        options = uvicorn.Config(
            make_app(service),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=DRAIN,
            server_header=False,
            proxy_headers=False,  # nobody asks for the caller's address
            ws="none",
        )
        gc.collect()
        gc.freeze()  # what is there now stays: no pause to look through all of it again and again
        # uvicorn stops in order at SIGTERM and raises it again at the end: by then all is done, and that is a success.
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        if hasattr(signal, "SIGHUP"):  # a terminal that closes ends the service in order, too
            signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
        uvicorn.Server(options).run(sockets=[address])
