"""Limits on connections: what a client may cost before its key is checked.

uvicorn does not limit the size, number and duration of headers, nor the number of connections. The limits are enforced
here, where bytes are received.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, NoReturn

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from belated.service._bodies import ErrorAnswer

#: Maximum bytes of the request line and headers, and maximum number of headers.
LARGEST_HEAD, MOST_HEADERS = 32 << 10, 100
#: Timeouts in seconds: for the headers, after the connection or the previous response; for a body, after its headers;
#: and for the client to read a response.
SLOWEST_HEAD, SLOWEST_BODY, SLOWEST_ANSWER = 10.0, 30.0, 60.0
#: Maximum number of connections, within the usual limit of 1024 open files.
MOST_CONNECTIONS = 900
#: Maximum number of pipelined requests.
MOST_AHEAD = 16
_TOO_LARGE = f"a request must have at most {MOST_HEADERS} headers and {LARGEST_HEAD} bytes of address and headers"


class Connection(HttpToolsProtocol):
    """One connection; beyond a limit it is closed with an error response."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.headers: list[tuple[bytes, bytes]] = []
        self._gathered = 0  # bytes since the parser's last callback: it buffers until an element is complete
        self._part = 0  # bytes that are being parsed
        self._in_head = self._in_body = False
        self._refusal = (400, "the request must be HTTP/1.1")
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout; beyond the maximum, close the connection that has been waiting longest for a request."""
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
            self._end(503, f"{MOST_CONNECTIONS} connections are already open")

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
        """Close the connection if its timeout has passed, else check again later: one timer for all requests."""
        left = self._deadline - self.loop.time()
        if left <= 0 and (self.transport.is_closing() or self.transport.get_write_buffer_size()):
            self.transport.abort()  # the client does not read
            return
        if left <= 0:
            self._wait(SLOWEST_HEAD)
            if self._in_head:
                self._end(408, f"the headers of a request must arrive within {SLOWEST_HEAD:g} seconds")
            elif self._in_body:
                self._end(408, f"a body must arrive within {SLOWEST_BODY:g} seconds")
            else:
                self.transport.close()
        self._timer = self.loop.call_later(min(max(left, 0.01), SLOWEST_HEAD), self._look)

    def _end(self, code: int, sentence: str) -> None:
        content = msgspec.json.encode(ErrorAnswer(sentence))
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(content)
        self.transport.write(STATUS_LINE[code] + head + content)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Reply with the reason why the parser, or one of the limits below, rejected the request."""
        self._end(*self._refusal)

    def _stop(self, code: int, sentence: str) -> NoReturn:
        """Abort the parser from one of its callbacks; it then calls `send_400_response`."""
        self._refusal = (code, sentence)
        raise ValueError(sentence)

    def data_received(self, data: bytes) -> None:
        """Parse received data; the parser itself would buffer headers without limit."""
        self._part = len(data)
        self._gathered += self._part
        super().data_received(data)
        if (self._gathered > LARGEST_HEAD or len(self.headers) > MOST_HEADERS) and not self.transport.is_closing():
            self._end(431, _TOO_LARGE)

    def on_message_begin(self) -> None:
        self._gathered, self._in_head = 0, True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Check the headers, and start the timeout for the body unless earlier requests are still being answered."""
        bulky = self._gathered + self._part > LARGEST_HEAD  # counts the bytes around the headers, too
        if len(self.headers) > MOST_HEADERS or (bulky and self._head_size() > LARGEST_HEAD):
            self._stop(431, _TOO_LARGE)
        if len(self.pipeline) >= MOST_AHEAD:
            self._stop(400, f"at most {MOST_AHEAD} requests may be pipelined")
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
        """Stop the timeout, unless the response was sent before the body was complete."""
        self._in_body = False
        if not self.cycle.response_complete:
            self._deadline = math.inf
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the timeout for the next request, unless this response is still unread or the next request is here."""
        super().on_response_complete()
        if not self.cycle.response_complete:
            self._await_body()
        elif not self.flow.write_paused:
            self._wait(SLOWEST_HEAD)

    def pause_writing(self) -> None:
        """Start the timeout for the client to read the response."""
        super().pause_writing()
        self._wait(SLOWEST_ANSWER)

    def resume_writing(self) -> None:
        """Resume the timeout that was interrupted."""
        super().resume_writing()
        self._await_body()
        if self.cycle is None or self.cycle.response_complete:
            self._wait(SLOWEST_HEAD)
