"""Programs that are measured as processes: `python -m benchmarks.fresh compiling`, or `growth EPISODES`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import belated
from belated_studies.timing import seconds
from benchmarks.problems import AGENT, DELAY, small

STATUS = Path("/proc/self/status")


def megabytes(fact: str) -> float:
    """Return a memory figure of this process from Linux."""
    facts = dict(line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines())
    return int(facts[fact].split()[0]) / 2**10


def peak() -> float:
    """Return the peak memory in MB; ru_maxrss would include that of the parent process."""
    if STATUS.is_file():
        return megabytes("VmHWM")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def compiling() -> tuple[float, float]:
    """Return the seconds that a first simulation takes more than a second one, and the peak memory of ten seeds."""
    first, second = (seconds(lambda: belated.simulate(small(), AGENT, DELAY, episodes=10, seed=0)) for _ in range(2))
    belated.run(small(), {"psvi": AGENT}, DELAY, episodes=4000, seeds=10, progress=False)
    return first - second, peak()


def growth(episodes: int) -> float:
    """Return the memory growth in MB of a long run that records every thousandth episode."""
    seen: list[float] = []

    def play(count: int) -> None:
        watch = lambda played: seen.append(megabytes("VmRSS"))  # noqa: E731
        belated.simulate(small(), AGENT, DELAY, episodes=count, seed=0, record_every=1000, watch=watch)

    play(10_000)
    before = seen[-1]
    seen.clear()
    play(episodes)
    return max(seen) - before


if __name__ == "__main__":
    print(json.dumps(compiling() if sys.argv[1] == "compiling" else growth(int(sys.argv[2]))))
