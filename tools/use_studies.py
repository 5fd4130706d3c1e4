"""Use the installed studies: `make dist-test` runs this in a clean environment, away from the clone."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path


def main() -> None:
    """Check the version, the winners, every entry point, and that a small report is written."""
    from belated_studies.winners import tuned

    if version("belated-studies") != version("belated"):
        sys.exit(f"versions differ: {version('belated-studies')} and {version('belated')}")
    searches = entry_points(group="belated.searches")
    for point in searches:
        if set(tuned(point.name)) != set(point.load()().spaces):
            sys.exit(f"the winners of {point.name} are not those of its search")
    commands = entry_points(group="belated.commands")
    program = [sys.executable, "-m", "belated"]
    helped = subprocess.run([*program, "--help"], capture_output=True, text=True, check=False)
    if helped.returncode or not all(point.name in helped.stdout for point in commands):
        sys.exit(f"{helped.stdout}{helped.stderr}")
    small = ("paper", "--only", "figure-2", "--only", "table-4", "--out", "report")
    played = subprocess.run([*program, *small], capture_output=True, text=True, check=False)
    if played.returncode or not Path("report/index.html").is_file():
        sys.exit(f"{played.stdout}{played.stderr}")
    print(f"belated-studies: {len(commands)} commands, {len(searches)} searches, a report written")


if __name__ == "__main__":
    main()
