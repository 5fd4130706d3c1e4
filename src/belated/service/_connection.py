"""Limits on connections: what a caller may cost before its key is checked.

uvicorn leaves the size and the number of headers, the time they take and the number of connections without limits. They
are set here, where the bytes come in.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, NoReturn

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from belated.service._bodies import ErrorAnswer

#: Bytes of an address with all headers, and how many headers there may be.
LARGEST_HEAD, MOST_HEADERS = 32 << 10, 100
#: Seconds within which all of them must come, after the connection or the answer before; for a body, after them; and
#: for an answer to be read.
SLOWEST_HEAD, SLOWEST_BODY, SLOWEST_ANSWER = 10.0, 30.0, 60.0
#: Connections at a time, within the 1024 files that a process may usually open.
MOST_CONNECTIONS = 900
#: Requests that may be sent before the one before them is answered.
MOST_AHEAD = 16
_TOO_LARGE = f"a request must have at most {MOST_HEADERS} headers and {LARGEST_HEAD} bytes of address and headers"


class Connection(HttpToolsProtocol):
    """One connection; it is ended with a sentence once it goes beyond a limit."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.headers: list[tuple[bytes, bytes]] = []
        self._gathered = 0  # bytes since the parser had something to tell: whatever it is, it waits for its end
        self._part = 0  # bytes that are being parsed
        self._in_head = self._in_body = False
        self._refusal = (400, "the request must be HTTP/1.1")
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock; where there are too many, the one that has waited longest for a request has to go."""
        super().connection_made(transport)
        self._wait(SLOWEST_HEAD)
        self._look()
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        longest = min(others, key=lambda each: each._idle_until)
        if longest._idle_until < math.inf:
            longest.transport.abort()
        else:
            self._end(503, f"{MOST_CONNECTIONS} connections are open already")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _idle_until(self) -> float:
        return math.inf if self._in_body else self._deadline

    def _wait(self, seconds: float) -> None:
        self._deadline = self.loop.time() + seconds

    def _look(self) -> None:
        """End the connection if its time is over, else look again later: one timer, however many requests there are."""
        left = self._deadline - self.loop.time()
        if left <= 0 and (self.transport.is_closing() or self.transport.get_write_buffer_size()):
            self.transport.abort()  # the caller does not read
            return
        if left <= 0:
            self._wait(SLOWEST_HEAD)
            if self._in_head:
                self._end(408, f"the headers of a request must have come within {SLOWEST_HEAD:g} seconds")
            elif self._in_body:
                self._end(408, f"a body must have come within {SLOWEST_BODY:g} seconds")
            else:
                self.transport.close()
        self._timer = self.loop.call_later(min(max(left, 0.01), SLOWEST_HEAD), self._look)

    def _end(self, code: int, sentence: str) -> None:
        content = msgspec.json.encode(ErrorAnswer(sentence))
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(content)
        self.transport.write(STATUS_LINE[code] + head + content)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Reply with what the parser, or one of the limits below, rejected."""
        self._end(*self._refusal)

    def _stop(self, code: int, sentence: str) -> NoReturn:
        """Stop the parser in one of its callbacks; it ends in `send_400_response`."""
        self._refusal = (code, sentence)
        raise ValueError(sentence)

    def data_received(self, data: bytes) -> None:
        """Parse what has come; the parser itself would gather one header, or many of them, however long they are."""
        self._part = len(data)
        self._gathered += self._part
        super().data_received(data)
        if (self._gathered > LARGEST_HEAD or len(self.headers) > MOST_HEADERS) and not self.transport.is_closing():
            self._end(431, _TOO_LARGE)

    def on_message_begin(self) -> None:
        self._gathered, self._in_head = 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the head, and start the clock for the body, unless others have to be answered first."""
        bulky = self._gathered + self._part > LARGEST_HEAD  # or what is around the head is
        if len(self.headers) > MOST_HEADERS or (bulky and self._head_size() > LARGEST_HEAD):
            self._stop(431, _TOO_LARGE)
        if len(self.pipeline) >= MOST_AHEAD:
            self._stop(400, f"at most {MOST_AHEAD} requests may be sent before the one before them is answered")
        self._gathered, self._in_head, self._in_body = 0, False, True
        super().on_headers_complete()
        self._await_body()

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _await_body(self) -> None:
        self._deadline = self.loop.time() + SLOWEST_BODY if self._in_body and not self.pipeline else math.inf

    def on_body(self, body: bytes) -> None:
        self._gathered = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the clock, unless the answer was given without the body."""
        self._in_body = False
        if not self.cycle.response_complete:
            self._deadline = math.inf
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the clock for the next request, unless this answer has yet to be read, or the next is here already."""
        super().on_response_complete()
        if not self.cycle.response_complete:
            self._await_body()
        elif not self.flow.write_paused:
            self._wait(SLOWEST_HEAD)

    def pause_writing(self) -> None:
        """Start the clock for an answer that has to be read."""
        super().pause_writing()
        self._wait(SLOWEST_ANSWER)

    def resume_writing(self) -> None:
        """Go on with what was before."""
        super().resume_writing()
        self._await_body()
        if self.cycle is None or self.cycle.response_complete:
            self._wait(SLOWEST_HEAD)
