"""Crafted files with a valid digest: each is refused, or what it holds is possible and can be gone on with."""

from __future__ import annotations

import contextlib
import copy
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import belated
from attacks.files import WORLD, Kept, experiment, save_all, simulation
from attacks.memories import play, spoiled
from attacks.tally import Tally
from belated._util.files import BLANK_SEAL, load_arrays, load_json, seal, sealed_archive
from belated.agents import _saving as agents
from belated.agents._base import Settings
from belated.decisions import DecisionLearner
from belated.decisions import _saving as learners
from belated.errors import BelatedError
from belated.runner import Store, load_winners
from belated.runner import _simulation as checkpoint
from belated.runner._experiment import WINNERS
from belated.runner._store import from_parquet, to_parquet

ODD: list[Any] = [
    None, True, -1, 0, 5000, 10**9, 10**12, 2**63, -(2**63) - 1, 10**400, 0.5, 1e308, float("nan"), float("inf"),
    "", "nan", "word", "\ud800", [], {}, [[]], [0] * 40,
]  # fmt: skip
MEMORY = 2 * 2**30
"""Bytes that may be taken beyond what the process has: a file that is small must not take more."""


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Rewrite a field of the files in turn, and seal them again."""
    files = {kind: kept for kind, kept in save_all(folder).items() if kind in CRAFTED}
    bound_memory()
    refused = 0
    for number in range(tries):
        if not tally.left():
            break
        kind = list(files)[number % len(files)]
        kept = files[kind]
        content = kept.path.read_bytes()
        what, crafted = CRAFTED[kind](kept, rng)
        with tally.attempt(f"{kind}: {what}"):
            kept.path.write_bytes(crafted)
            try:
                use = USES[kind](kept.path)
            except BelatedError:
                refused += 1
            else:
                use()
        kept.path.write_bytes(content)
    tally.notes.append(f"{refused} refused, {tally.held - refused} lived")


def bound_memory() -> None:
    """Let whatever would take much more memory than now fail."""
    with contextlib.suppress(OSError, ValueError, IndexError):  # without /proc the memory is not bounded
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))


def crafted_value(value: Any, rng: np.random.Generator) -> tuple[str, Any]:
    """Return `value`, plain, with something odd in one place at random, and where that is."""
    whole = {"": copy.deepcopy(value)}
    place: Any = whole
    key: Any = ""
    path = ""
    while isinstance(place[key], dict | list) and place[key] and (place is whole or rng.random() < 0.8):
        place = place[key]
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[int(rng.integers(len(keys)))]
        path += f".{key}"
    if isinstance(place, dict) and rng.random() < 0.1:
        del place[key]
        return f"without {path}", whole.get("", {})
    odd = ODD[int(rng.integers(len(ODD)))]
    place[key] = odd
    return f"{path} = {str(odd)[:30]!r}", whole[""]


def _archive(kind: str, version: int) -> Callable[[Kept, np.random.Generator], tuple[str, bytes]]:
    def craft(kept: Kept, rng: np.random.Generator) -> tuple[str, bytes]:
        header, arrays = load_arrays(kept.path, kind, version)
        names = list(arrays)
        if rng.random() < 0.5:
            what, header = crafted_value(header, rng)
        else:
            name = names[int(rng.integers(len(names)))]
            ways = list(spoiled(arrays[name]))
            how, arrays[name] = ways[int(rng.integers(len(ways)))]
            what = f"{name} {how}"
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        return what, sealed_archive({"header": text, **arrays})

    return craft


def _parquet(kept: Kept, rng: np.random.Generator) -> tuple[str, bytes]:
    frame, about = from_parquet(kept.path)
    if rng.random() < 0.3:
        what, about = crafted_value(about, rng)
        return f"about {what}", to_parquet(frame, about)
    name = frame.columns[int(rng.integers(len(frame.columns)))]
    ways = list(spoiled(frame[name].to_numpy())) if frame[name].dtype.is_numeric() else [("null", None)]
    how, values = ways[int(rng.integers(len(ways)))]
    if values is None or values.ndim > 1:
        return f"without {name}", to_parquet(frame.drop(name), about)
    return f"{name} {how}", to_parquet(frame.with_columns(pl.Series(name, values)), about)


def _json(kept: Kept, rng: np.random.Generator) -> tuple[str, bytes]:
    whole = load_json(kept.path, WINNERS, 1)
    what, changed = crafted_value(whole, rng)
    if not isinstance(changed, dict):
        changed = {"given": changed}
    return what, seal(json.dumps({**changed, "digest": BLANK_SEAL}).encode())


def _go_on_with_agent(path: Path) -> Callable[[], None]:
    agent = belated.load_agent(path).agent
    assert isinstance(agent.settings, Settings)

    def use() -> None:
        problem = agent.problem
        if (problem.states, problem.actions, problem.horizon) == (WORLD.states, WORLD.actions, WORLD.horizon):
            with contextlib.suppress(BelatedError):
                play(agent, WORLD, 5, 20)
        elif problem.horizon < 10**4:
            agent.plan(np.random.default_rng(0))

    return use


def _go_on_with_run(path: Path) -> Callable[[], None]:
    run = simulation()
    run.restore(path)

    def use() -> None:
        assert 0 < run.played <= run.episodes
        while run.played < run.episodes:
            run.advance()
        _check_possible(run.rows())

    return use


def _go_on_with_learner(path: Path) -> Callable[[], None]:
    learner = DecisionLearner.load(path)

    def use() -> None:
        with contextlib.suppress(BelatedError):
            for k in range(20):
                decision = learner.decide(np.eye(learner.dimension))
                assert 0 <= decision.action < learner.dimension
                if k % 2:
                    learner.feedback(decision.id, 1.0)

    return use


def _look_at_rows(path: Path) -> Callable[[], None]:
    store, (run,) = Store(path.parents[4]), experiment().runs()
    assert store.path(run) == path
    frame = store.read(run)
    return lambda: _check_possible(frame)


def _look_at_winners(path: Path) -> Callable[[], None]:
    winners = load_winners(path)

    def use() -> None:
        assert all(isinstance(each, Settings) for each in winners.values())

    return use


def _check_possible(frame: pl.DataFrame | None) -> None:
    """Refuse rows that no run can have given, judged without the library's own checks."""
    assert frame is not None
    assert frame["episode"].to_list() == list(range(frame.height))
    value, optimal, regret = (frame[name].to_numpy() for name in ("value", "optimal", "regret"))
    for values in (value, optimal):
        assert np.isfinite(values).all() and values.min() >= -1e-5
        assert values.max() <= WORLD.horizon + 1e-5
    assert np.array_equal(regret, np.cumsum(optimal - value))
    assert frame["start"].is_between(0, WORLD.states - 1).all()
    assert (frame["delay"].drop_nulls() >= 0).all()
    assert 0 <= frame["arrived"].sum() <= frame.height


CRAFTED: dict[str, Callable[[Kept, np.random.Generator], tuple[str, bytes]]] = {
    "agent": _archive(agents.KIND, agents.VERSION),
    "checkpoint": _archive(checkpoint.KIND, checkpoint.VERSION),
    "learner": _archive(learners.KIND, learners.VERSION),
    "rows": _parquet,
    "winners": _json,
}
USES: dict[str, Callable[[Path], Callable[[], None]]] = {
    "agent": _go_on_with_agent,
    "checkpoint": _go_on_with_run,
    "learner": _go_on_with_learner,
    "rows": _look_at_rows,
    "winners": _look_at_winners,
}
