"""Files that name callables that run commands: none of them is called, in any kind of file, anywhere in it."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import belated
from attacks.files import WORLD, Kept, save_all
from attacks.records import USES
from attacks.tally import Tally
from belated._cli.bounds import mismatches
from belated._util.files import BLANK_SEAL, load_arrays, load_json, seal, sealed_archive
from belated.agents import _saving as agents
from belated.decisions import _saving as learners
from belated.errors import BelatedError
from belated.features import OneHot
from belated.runner import Experiment
from belated.runner import _simulation as checkpoint
from belated.runner._experiment import WINNERS
from belated.runner._store import from_parquet, to_parquet
from belated.theory import bounds
from belated.types import SimulatorProblem

Content = tuple[Any, Callable[[Any], bytes]]
"""The plain values of a file, and a function that makes a sealed file of modified ones."""


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Put a payload that writes a marker into each position of the files in turn."""
    marker = folder / "marker"
    kept = save_all(folder)
    belated.save_agent(folder / "features.npz", _agent_on_features())
    kept["features"] = Kept(folder / "features.npz", lambda: belated.load_agent(folder / "features.npz"))
    files = {kind: kept[kind] for kind in CONTENT}
    wicked = list(payloads(marker))
    for number in range(tries):
        if not tally.left():
            return
        payload = wicked[int(rng.integers(len(wicked)))]
        if number % (len(files) + 1) == len(files):
            with tally.attempt(f"experiment: {payload}"):
                _run_experiment(payload, folder)
                assert not marker.exists(), "a command was run"
            continue
        kind = list(files)[number % (len(files) + 1)]
        path = files[kind].path
        content = path.read_bytes()
        values, sealed = CONTENT[kind](path)
        places = list(_places(values))
        place = places[int(rng.integers(len(places)))]
        with tally.attempt(f"{kind}: {'.'.join(map(str, place))} = {payload}"):
            path.write_bytes(sealed(_put(values, place, payload)))
            with contextlib.suppress(BelatedError):
                READ[kind](path)
            assert not marker.exists(), "a command was run"
        path.write_bytes(content)
        marker.unlink(missing_ok=True)


def payloads(marker: Path) -> Iterator[Any]:
    """Yield tables and names that would write the marker if what they name were called."""
    calls: dict[str, dict[str, Any]] = {
        "subprocess:getoutput": {"cmd": f"touch {marker}"},
        "subprocess:Popen": {"args": ["touch", str(marker)]},
        "os:system": {"command": f"touch {marker}"},
        "builtins:open": {"file": str(marker), "mode": "w"},
        "logging:FileHandler": {"filename": str(marker)},
    }
    for name, settings in calls.items():
        yield name
        yield {"algorithm": name, **settings}
        yield {"algorithm": "rare-switching", "base": {"algorithm": name, **settings}}
        yield {"algorithm": "bold", "base": {"algorithm": "multi-batch", "base": {"algorithm": name, **settings}}}
        yield {"distribution": name, **settings}
        yield {"distribution": "lossy", "missing": 0.1, "of": {"distribution": name, **settings}}
        yield {"environment": name, **settings}
        yield {"environment": "gymnasium", "factory": name, "kwargs": settings, "horizon": 3}
        yield {"features": name, **settings}
        yield {"features": "sklearn", "transformer": name, "settings": settings, "rows": [[0.0]]}
        yield {"features": "callable", "function": name, "width": 1}
        yield {"features": "joint", "function": name, "width": 1, "actions": 2}


def _agent_on_features() -> Any:
    problem = SimulatorProblem(OneHot(start=(0,), sizes=(3,)), 2, actions=2)
    return belated.RareSwitching(base=belated.DelayedPSVI(), every=2).start(problem)


def _places(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield all paths within plain values."""
    if path:
        yield path
    if isinstance(values, dict | list):
        for key in values if isinstance(values, dict) else range(len(values)):
            yield from _places(values[key], (*path, key))


def _put(values: Any, place: tuple[Any, ...], payload: Any) -> Any:
    changed = copy.deepcopy(values)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = payload
    return changed


def _archive(kind: str, version: int) -> Callable[[Path], Content]:
    def content(path: Path) -> Content:
        header, arrays = load_arrays(path, kind, version)
        return header, lambda values: sealed_archive(
            {"header": np.frombuffer(json.dumps(values).encode(), np.uint8), **arrays}
        )

    return content


def _parquet(path: Path) -> Content:
    frame, about = from_parquet(path)
    return about, lambda values: to_parquet(frame, values)


def _json(path: Path) -> Content:
    return load_json(path, WINNERS, 1), lambda values: seal(json.dumps({**values, "digest": BLANK_SEAL}).encode())


def _read_rows(path: Path) -> None:
    with contextlib.suppress(BelatedError):
        USES["rows"](path)
    frame, about = from_parquet(path)
    asked = bounds(WORLD.dimension, WORLD.horizon, frame.height, 0.05, belated.Poisson(3))
    mismatches(asked, frame, about)


def _read_winners(path: Path) -> None:
    with contextlib.suppress(BelatedError):
        USES["winners"](path)
    Experiment.from_dict({**_experiment(), "agents": {}, "include": path.name}, folder=path.parent)


def _experiment() -> dict[str, Any]:
    return {
        "name": "attacked",
        "episodes": 2,
        "seeds": 1,
        "environments": {"a": {"environment": "riverswim"}},
        "agents": {"a": {"algorithm": "greedy"}},
        "delays": {"a": {"distribution": "poisson", "mean": 1}},
    }


def _run_experiment(payload: Any, folder: Path) -> None:
    """Give a payload to each part of an experiment, which may import, but calls only what makes that part."""
    gymnasium = {"environment": "gymnasium", "id": "CartPole-v1", "horizon": 3, "features": payload}
    tables = [("agents", payload), ("delays", payload), ("environments", payload), ("environments", gymnasium)]
    for part, table in tables:
        with contextlib.suppress(BelatedError):
            Experiment.from_dict({**_experiment(), part: {"a": table}}, folder=folder)


CONTENT: dict[str, Callable[[Path], Content]] = {
    "agent": _archive(agents.KIND, agents.VERSION),
    "features": _archive(agents.KIND, agents.VERSION),
    "checkpoint": _archive(checkpoint.KIND, checkpoint.VERSION),
    "learner": _archive(learners.KIND, learners.VERSION),
    "rows": _parquet,
    "winners": _json,
}
READ: dict[str, Callable[[Path], object]] = {
    "agent": USES["agent"],
    "features": belated.load_agent,
    "checkpoint": USES["checkpoint"],
    "learner": USES["learner"],
    "rows": _read_rows,
    "winners": _read_winners,
}
