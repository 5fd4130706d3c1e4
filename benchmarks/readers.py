"""Read all that is known of a model over and over: `python -m benchmarks.readers PORT READERS`, until its input ends.

It prints a line once there is an answer, and in the end how many there were.
"""

from __future__ import annotations

import http.client
import sys
import threading


def main(port: int, readers: int) -> None:
    """Read until nobody listens any more."""
    answers, reading, stopped = [0] * readers, threading.Event(), threading.Event()

    def read(number: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not stopped.is_set():
            line.request("GET", "/v1/models/ads")
            answer = line.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"answered {answer.status}")
            answers[number] += 1
            reading.set()

    threads = [threading.Thread(target=read, args=[number]) for number in range(readers)]
    for each in threads:
        each.start()
    reading.wait()
    print("reading", flush=True)
    sys.stdin.read()
    stopped.set()
    for each in threads:
        each.join()
    print(sum(answers))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
