"""Measure the main walks through the package: distinct functions and files entered, and the deepest stack.

    python tools/walks.py              all walks
    python tools/walks.py http -v      some of them, with the functions

Each walk runs once to warm up (imports, compiled code, caches) and is then counted, in all threads. Frames of other
packages, comprehensions and lambdas do not count; "frames" is the largest number of the package's frames on one stack.
Only public names are used, so the same script can measure another version on PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import belated

STUDIES = "belated.studies" if find_spec("belated.studies") else "belated_studies"


def run(folder: Path) -> None:
    """From `run` to a row of a Parquet file."""
    belated.run(
        belated.RiverSwim(), belated.DelayedPSVI(), belated.Poisson(5), episodes=20, seeds=1, folder=folder, jobs=1,
        progress=False,
    )  # fmt: skip


def http(folder: Path) -> None:
    """Decide over HTTP, commit to SQLite, report the reward, decide again."""
    decisions, service = import_module("belated.decisions"), _service()
    table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
    store = decisions.SQLiteStore(folder / "decisions.db")
    serving = service.Service(store, {"ads": decisions.ModelSettings.from_table(table)}, clock=time.time)
    app = service.make_app(serving)

    async def post(what: str, body: dict[str, Any]) -> Any:
        sent: list[Any] = []
        request = {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

        async def receive() -> Any:
            return request

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/json")]
        path = f"/v1/models/ads/{what}"
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        await app(scope, receive, send)
        return json.loads(sent[-1]["body"])

    async def walk() -> None:
        made = await post("decide", {"context": {"x": 1.0}})
        await post("feedback", {"id": made["id"], "reward": 1.0})
        await post("decide", {"context": {"x": 1.0}})

    asyncio.run(walk())  # to warm up what belongs to this service
    with counting:
        asyncio.run(walk())
    serving.close()


def auto(folder: Path) -> None:
    """AutoPSVI on an environment of Gymnasium."""
    cart_pole = belated.GymEnvironment("CartPole-v1", horizon=20)
    belated.simulate(cart_pole, belated.AutoPSVI(), belated.Poisson(5), episodes=20, seed=0)


def figure(folder: Path) -> None:
    """A figure of a study, from its declaration to the report."""
    study = import_module(f"{STUDIES}.paper").STUDY
    produce = import_module(f"{STUDIES}.produce").produce
    produce(study, study.quick, out=folder, only=["figure-2"], progress=False)


def _service() -> Any:
    service = import_module("belated.service")
    if hasattr(service, "make_app"):
        return service
    both = vars(import_module("belated.service.app")) | vars(import_module("belated.service.service"))
    return type("service", (), {name: staticmethod(both[name]) for name in ("Service", "make_app")})


WALKS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "run": ("run to a Parquet row", run),
    "http": ("HTTP decide, commit, feedback, decide", http),
    "auto": ("AutoPSVI on Gymnasium", auto),
    "figure": ("a study's figure", figure),
}


class Counting:
    """Counts the functions that are entered while it is active, in every thread."""

    def __init__(self) -> None:
        self.active = False
        self.seen: set[CodeType] = set()
        self.frames = 0
        files = [belated.__file__, import_module(STUDIES).__file__]
        self.roots = tuple(f"{Path(file).parent}/" for file in files if file is not None)

    def __enter__(self) -> None:
        self.seen.clear()
        self.frames, self.active = 0, True

    def __exit__(self, *exception: object) -> None:
        self.active = False

    def is_ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.roots) and not code.co_name.startswith("<")

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if not self.active or event != "call" or not self.is_ours(frame.f_code):
            return
        self.seen.add(frame.f_code)
        depth, below = 1, frame.f_back
        while below is not None:
            depth += self.is_ours(below.f_code)
            below = below.f_back
        self.frames = max(self.frames, depth)


counting = Counting()


def main(given: list[str]) -> None:
    names = [name for name in given if name != "-v"] or list(WALKS)
    threading.setprofile(counting)
    sys.setprofile(counting)
    print(f"{'walk':40}{'functions':>10}{'files':>7}{'frames':>8}")
    for name in names:
        title, walk = WALKS[name]
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            walk(Path(first))
            if name != "http":
                with counting:
                    walk(Path(second))
        files = {code.co_filename for code in counting.seen}
        print(f"{title:40}{len(counting.seen):10}{len(files):7}{counting.frames:8}", flush=True)
        if "-v" in given:
            print(*sorted(f"    {code.co_filename} {code.co_qualname}" for code in counting.seen), sep="\n")
    sys.setprofile(None)
    threading.setprofile(None)


if __name__ == "__main__":
    main(sys.argv[1:])
