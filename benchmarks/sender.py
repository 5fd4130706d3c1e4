"""Ask the decision service as fast as it answers: `python -m benchmarks.sender PORT COUNT CONNECTIONS MIXED NUMBERS`.

A client on bare sockets with bytes made beforehand, so that the processors are left to the service. Each connection
sends its next request when the last was answered; with MIXED = 1 every other one is the reward of the decision before.
It prints as JSON how long all took, how long each took, and its own time on the processor, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import uvloop


def post(what: str, body: bytes) -> bytes:
    """Return a whole request."""
    head = f"POST /v1/models/ads/{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Load:
    """What all connections share."""

    def __init__(self, count: int, mixed: bool, numbers: int) -> None:
        context = {f"x{i}": 0.1 * i for i in range(numbers)}
        self.decide, self.mixed = post("decide", json.dumps({"context": context}).encode()), mixed
        self.left, self.missing, self.took = count, count, list[float]()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Connection(asyncio.Protocol):
    """One caller."""

    def __init__(self, load: Load) -> None:
        self._load, self._next, self._answer, self._began = load, load.decide, b"", 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport: Any = transport
        self._send()

    def _send(self) -> None:
        if self._load.left:
            self._load.left -= 1
            self._began = time.perf_counter()
            self._transport.write(self._next)

    def data_received(self, data: bytes) -> None:
        """Take an answer, whole or in parts, and send the next request."""
        self._answer += data
        head, end, body = self._answer.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        load = self._load
        load.took.append(time.perf_counter() - self._began)
        if not head.startswith(b"HTTP/1.1 200"):
            load.done.set_exception(RuntimeError(repr(self._answer)))
        reward = load.mixed and self._next is load.decide
        self._next = post("feedback", b'{"id": "%b", "reward": 1.0}' % body.split(b'"')[3]) if reward else load.decide
        self._answer = b""
        load.missing -= 1
        if not load.missing:
            load.done.set_result(None)
        self._send()


async def main(port: int, count: int, connections: int, mixed: int, numbers: int) -> None:
    """Send `count` requests and print how long they took."""
    loop, load = asyncio.get_running_loop(), Load(count, bool(mixed), numbers)
    began = time.perf_counter()
    await asyncio.gather(
        *(loop.create_connection(lambda: Connection(load), "127.0.0.1", port) for _ in range(connections))
    )
    await load.done
    print(json.dumps([time.perf_counter() - began, load.took, time.process_time()]))


if __name__ == "__main__":
    uvloop.run(main(*map(int, sys.argv[1:])))
