"""The decision service of two revisions in turn: `python -m benchmarks.versus REVISION [REPEATS]`.

The other one is taken from git. Both are asked by the same callers, one after the other and in reversed order every
other time, so that whatever else the machine does hits both; a ratio compares the medians, and is above 1 where this
one is better.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.measure import interleaved
from benchmarks.service import Running, load

ROOT = Path(__file__).parents[1]
REQUESTS = 20_000
NAMES = {
    "decide over HTTP": "/s",
    "decide and feedback over HTTP": "/s",
    "CPU of the service for a decision": "µs",
    "CPU of the service for a decision or a reward": "µs",
    "in process, with true probabilities (32 draws)": "µs CPU",
    "in process, with one draw and no probability": "µs CPU",
}


def unpack(revision: str, folder: Path) -> Path:
    """Put the sources of a revision into a folder."""
    packed = subprocess.run(
        ["git", "archive", revision, "src", "studies/src"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def measure(tree: Path) -> list[float]:
    """Measure the sources in `tree` once; see `NAMES`."""
    given = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'studies' / 'src'}"}
    found, costs = [], []
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:  # on a disk, not in memory
        running = Running(Path(folder), given)
        for kind in (0, 1):
            before = running.cpu
            found.append(load(running.port, REQUESTS, kind).rate)
            costs.append(1e6 * (running.cpu - before) / REQUESTS)
        running.stop()
    code = "import json; from benchmarks.service import rounds; print(json.dumps([rounds(32, 0.01), rounds(1, 0.0)]))"
    asked = [sys.executable, "-c", code]
    told = subprocess.run(asked, cwd=ROOT, env={**os.environ, **given}, stdout=subprocess.PIPE, check=True)
    return [*found, *costs, *json.loads(told.stdout)]


def main(revision: str, repeats: str = "5") -> None:
    """Measure both and print the medians."""
    with tempfile.TemporaryDirectory() as folder:
        trees, taken = (unpack(revision, Path(folder)), ROOT), ([], [])  # type: tuple[Path, Path], tuple[list[list[float]], list[list[float]]]

        def turn(which: int) -> Callable[[], float]:
            def take() -> float:
                taken[which].append(measure(trees[which]))
                return 0.0

            return take

        interleaved(int(repeats), turn(0), turn(1))
    print(f"{'median of ' + repeats + ' turns':48}{revision[:10]:>12}{'now':>12}{'ratio':>8}")
    for place, (name, unit) in enumerate(NAMES.items()):
        before, after = (median(each[place] for each in some) for some in taken)
        ratio = after / before if unit == "/s" else before / after
        print(f"{name + ', ' + unit:48}{before:12.1f}{after:12.1f}{ratio:8.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
