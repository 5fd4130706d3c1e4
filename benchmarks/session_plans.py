"""How long plans of sessions take: to be drawn, to be asked, and to be ready for after a restart."""

from __future__ import annotations

import io
import time

import numpy as np

from belated._kernels.streams import stream
from belated.decisions import ModelSettings
from belated.decisions._plans import encode_state
from belated.decisions._session_learner import SessionLearner
from benchmarks.measure import Measure, at_most
from benchmarks.problems import Effort

HORIZON, FEATURES, ACTIONS = 8, 20, 5


def settings() -> ModelSettings:
    names = [f"x{i}" for i in range(FEATURES)]
    table = {"actions": [f"a{i}" for i in range(ACTIONS)], "features": names, "silence": {"kind": "unknown"}}
    return ModelSettings.from_table({**table, "horizon": HORIZON})


def filled(model: ModelSettings, sessions: int) -> SessionLearner:
    """Return a learner of sessions in which every context is another."""
    learner, rng = SessionLearner(model), stream(0, "bench")
    names = model.encoding.features
    for session in range(sessions):
        for step in range(HORIZON):
            x = rng.random(FEATURES)
            state = encode_state(model, dict(zip(names, x.tolist(), strict=True)), model.names)
            action = int(rng.integers(ACTIONS))
            learner.step(session, step, state, action)
            learner.reward(session, step, float(x[action]))
        learner.end(session, terminal=True)
    return learner


def session_plans(effort: Effort) -> list[Measure]:
    """Measure in seconds of processor time."""
    many, most = (10_000, 100_000) if effort.patient else (500, 1_000)
    model = settings()
    learner = filled(model, many)
    learner.draw(0)  # compiles
    drawn = []
    for place in range(1, 1 + effort.repeats):
        begin = time.process_time()
        plans = learner.draw(place)
        drawn.append(time.process_time() - begin)
    state = encode_state(model, dict.fromkeys(model.encoding.features, 0.5), model.names)
    asked = []
    for _ in range(effort.repeats):
        begin = time.perf_counter()
        for step in range(1000):
            plans.distributions(step % HORIZON, state)
        asked.append((time.perf_counter() - begin) * 1e3)
    large = filled(model, most).memory()
    content = io.BytesIO()
    np.savez(content, **large)  # type: ignore[arg-type]
    restarted = []
    for _ in range(effort.repeats):
        begin = time.process_time()
        content.seek(0)
        with np.load(content) as archive:
            memory = {name: archive[name] for name in archive.files}
        SessionLearner(model).restore(memory)
        restarted.append(time.process_time() - begin)
    about = f"{HORIZON} steps, {FEATURES} features, {ACTIONS} actions"
    bounds = (at_most(5.0), at_most(30.0), at_most(10.0)) if effort.patient else (None, None, None)
    return [
        Measure(f"a set of plans after {many} sessions of {about}", tuple(drawn), "s", bounds[0]),
        Measure("all members asked for their probabilities", tuple(asked), "µs", bounds[1]),
        Measure(
            f"what {most} sessions have taught is read", tuple(restarted), "s", bounds[2],
            f"{len(content.getvalue()) / 1e6:.0f} MB",
        ),
    ]  # fmt: skip
