"""Play a model of very many features: `python -m benchmarks.neighbour PORT ROUNDS`, until its input ends.

It prints a line once it has played so many rounds, and in the end how many there were. A round is a decision among ten
actions of thirty tags each, and its reward.
"""

from __future__ import annotations

import http.client
import json
import random
import sys
import threading
from typing import Any

ACTIONS, TAGS, WORDS = 10, 30, 2**20


def main(port: int, rounds: int) -> None:
    """Play until nobody listens any more."""
    line, rng, stopped, played = http.client.HTTPConnection("127.0.0.1", port, timeout=60), random.Random(0), [], 0

    def ask(what: str, body: Any) -> Any:
        line.request("POST", f"/v1/models/large/{what}", json.dumps(body), {"Content-Type": "application/json"})
        answer = line.getresponse()
        read = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"answered {answer.status}: {read}")
        return read

    def listen() -> None:
        sys.stdin.read()
        stopped.append(True)

    threading.Thread(target=listen, daemon=True).start()
    while not stopped:
        actions = {f"a{i}": {"words": [f"w{int(WORDS ** rng.random())}" for _ in range(TAGS)]} for i in range(ACTIONS)}
        made = ask("decide", {"context": {}, "actions": actions})
        ask("feedback", {"id": made["id"], "reward": rng.random()})
        played += 1
        if played == rounds:
            print("playing", flush=True)
    print(played)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
