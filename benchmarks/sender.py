"""Ask the decision service as fast as it answers: `python -m benchmarks.sender PORT COUNT CONNECTIONS KIND NUMBERS`.

A client on bare sockets with bytes made beforehand, so that the processors are left to the service. Each connection
sends its next request when the last was answered. KIND is 0 for decisions, 1 if every other request is the reward of
the decision before, or a number of steps: then a connection is a visitor whose sessions have so many, and a reward in
the end. It prints as JSON how long all took, how long each took (of sessions: each step), and its own time on the
processor, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from functools import partial
from typing import Any

import uvloop


def post(what: str, body: bytes) -> bytes:
    """Return a whole request."""
    head = f"POST /v1/models/ads/{what} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Load:
    """What all connections share."""

    def __init__(self, count: int, numbers: int) -> None:
        rng = random.Random(0)
        contexts = [{f"x{i}": round(rng.uniform(-1, 1), 3) for i in range(numbers)} for _ in range(512)]
        self.contexts = [json.dumps(each).encode() for each in contexts]
        self.left, self.missing, self.took = count, count, list[float]()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Connection(asyncio.Protocol):
    """One caller, who asks for single decisions."""

    def __init__(self, load: Load, number: int) -> None:
        self._load, self._number, self._answer, self._began = load, number, b"", 0.0
        self._next, self.counts = self.decide(), True

    def decide(self) -> bytes:
        return post("decide", b'{"context": %b}' % self._load.contexts[0])

    def after(self, body: bytes) -> bytes:
        """Return what is asked after an answer."""
        return self._next

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
        if self.counts:
            load.took.append(time.perf_counter() - self._began)
        if not head.startswith(b"HTTP/1.1 200"):
            load.done.set_exception(RuntimeError(repr(self._answer)))
        self._next = self.after(body)
        self._answer = b""
        load.missing -= 1
        if not load.missing:
            load.done.set_result(None)
        self._send()


class Rewarding(Connection):
    """One caller, who reports the reward of each decision."""

    reports = False

    def after(self, body: bytes) -> bytes:
        self.reports = not self.reports
        return post("feedback", b'{"id": "%b", "reward": 1.0}' % body.split(b'"')[3]) if self.reports else self.decide()


class Visitor(Connection):
    """One caller, whose sessions have some steps, and a reward after the last."""

    steps = 0

    def __init__(self, load: Load, number: int) -> None:
        self._made, self._session = 0, b""
        super().__init__(load, number)

    def decide(self) -> bytes:
        if self._made % self.steps == 0:
            self._session = b"%d.%d.%d" % (time.time_ns(), self._number, self._made)
        self._made += 1
        context = self._load.contexts[(self._number + 7 * self._made) % len(self._load.contexts)]
        return post("decide", b'{"session": "%b", "context": %b}' % (self._session, context))

    def after(self, body: bytes) -> bytes:
        self.counts = not self.counts or self._made % self.steps != 0
        if self.counts:
            return self.decide()
        return post("feedback", b'{"session": "%b", "reward": %d}' % (self._session, self._made % 3 == 0))


async def main(port: int, count: int, connections: int, kind: int, numbers: int) -> None:
    """Send `count` requests and print how long they took."""
    loop, load = asyncio.get_running_loop(), Load(count, numbers)
    caller = (Connection, Rewarding)[kind] if kind < 2 else Visitor
    Visitor.steps = kind
    callers = [partial(caller, load, number) for number in range(connections)]
    began = time.perf_counter()
    await asyncio.gather(*(loop.create_connection(each, "127.0.0.1", port) for each in callers))
    await load.done
    print(json.dumps([time.perf_counter() - began, load.took, time.process_time()]))


if __name__ == "__main__":
    uvloop.run(main(*map(int, sys.argv[1:])))
