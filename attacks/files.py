"""One file of each kind that the library reads back, and what is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import belated
from belated._util.files import load_json, save_json
from belated.decisions import DecisionLearner, Unknown
from belated.decisions._snapshot import take
from belated.runner import Results, Run, Store, run_experiment
from belated.runner._simulation import CHUNK, Simulation
from belated.runner._tuning import Rung, Search, Space, load_winners, tune
from belated_studies.produce import MEASURED, REPORT, TIMES

WORLD = belated.RiverSwim(states=3, horizon=3)
AGENT = belated.EpsilonGreedy(epsilon=0.2)
EPISODES = 3 * CHUNK
"""Long enough for a checkpoint in the middle."""


class Kept(NamedTuple):
    """A file, and a function that gives what it holds as a value that can be compared."""

    path: Path
    read: Callable[[], Any]


def experiment(episodes: int = 30, seeds: int = 1) -> belated.Experiment:
    """Return an experiment that takes no time."""
    return belated.Experiment(
        name="attacked",
        environments=WORLD,
        agents={"greedy": AGENT},
        delays=belated.Poisson(3),
        episodes=episodes,
        seeds=seeds,
    )


def simulation() -> Simulation:
    """Return a run that has not begun."""
    return Simulation(Run(WORLD, AGENT, belated.Poisson(3), EPISODES, seed=4))


def save_all(folder: Path) -> dict[str, Kept]:
    """Write one file of each kind."""
    return {**_rows(folder), **_states(folder), **_learner(folder), **_json(folder)}


def _rows(folder: Path) -> dict[str, Kept]:
    store, declared = Store(folder / "rows"), experiment()
    results = run_experiment(declared, folder=folder / "rows", jobs=1, progress=False)
    (run,) = declared.runs()
    path = folder / "results.parquet"
    results.save(path)

    def rows() -> Any:
        frame = store.read(run)
        assert frame is not None, "the file is there"
        return frame.rows()

    return {
        "rows": Kept(store.path(run), rows),
        "results": Kept(path, lambda: Results.load(path).frame.rows()),
    }


def plain(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return arrays so that == compares every bit."""
    return {name: (values.dtype.str, values.shape, np.asarray(values).tobytes()) for name, values in arrays.items()}


def _states(folder: Path) -> dict[str, Kept]:
    agent, rng, dynamics = AGENT.start(WORLD.problem), np.random.default_rng(1), np.random.default_rng(2)
    for k in range(5):
        agent.learn([belated.Feedback(k, WORLD.rollout(agent.plan(rng), dynamics))])
    saved, checkpoint = folder / "agent.npz", folder / "run.checkpoint"
    belated.save_agent(saved, agent, rng)
    running = simulation()
    while running.played < CHUNK:
        running.advance()
    running.save(checkpoint)

    def state() -> Any:
        again, stream = belated.load_agent(saved)
        assert stream is not None, "a stream was saved"
        return plain(again.memory()), stream.bit_generator.state, again.settings, again.problem.horizon

    def whole() -> Any:
        again = simulation()
        again.restore(checkpoint)
        streams = [rng.bit_generator.state for rng in again.rngs.values()]
        memory = again.agent.memory()  # type: ignore[attr-defined]
        kept = {**memory, **again.array_queue._asdict(), **again.columns}
        return again.played, again.regret, again.recorded, streams, plain(kept)

    return {"agent": Kept(saved, state), "checkpoint": Kept(checkpoint, whole)}


def _learner(folder: Path) -> dict[str, Kept]:
    now = iter(range(10**9, 2 * 10**9))
    learner = DecisionLearner(2, silence=Unknown(), clock=lambda: float(next(now)))
    for k in range(6):
        decision = learner.decide([[1.0, 0.0], [0.3, 1.0]], key=f"d{k}")
        if k % 2:
            learner.feedback(decision.id, 0.25 * k)
    path = folder / "learner.npz"
    learner.save(path)

    def state() -> Any:
        again = DecisionLearner.load(path)
        known = take(again._engine.state, again._engine.state.latest)
        return known.header, known.arrays, known.digest, again.in_flight, again.learned, again.settings

    return {"learner": Kept(path, state)}


def _json(folder: Path) -> dict[str, Kept]:
    spaces = {"greedy": Space(AGENT, {"epsilon": [0.1, 0.3]})}
    search = Search("attacked", WORLD, belated.Poisson(3), spaces, [Rung(30, [50], keep=1)], report_seeds=[0])
    tune(search, folder=folder / "tuning", jobs=1, progress=False).save(folder)
    made = {"winners": Kept(folder / "winners.json", lambda: load_winners(folder / "winners.json"))}
    for name, kind in {"results.json": REPORT, "measured.json": MEASURED, "times.json": TIMES}.items():
        path = folder / name
        save_json(path, kind, 1, {"values": [{"regret": 2100.3, "agent": "psvi"}, {"regret": 0.5, "agent": "random"}]})

        def read(path: Path = path, kind: str = kind) -> Any:
            return load_json(path, kind, 1)

        made[name] = Kept(path, read)
    return made
