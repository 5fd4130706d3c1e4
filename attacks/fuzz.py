"""Random specifications, arguments, constructors and batches: each works, or raises one of the library's errors.

Hypothesis generates them, shrinks failures, and stores them in `.hypothesis`, where the next attack begins.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import gymnasium
import hypothesis
import numpy as np
from hypothesis import strategies as st
from typer.testing import CliRunner

import belated
from attacks.files import AGENT, WORLD, plain
from attacks.records import bound_memory
from attacks.tally import Tally
from belated._cli import app
from belated.agents import AGENTS
from belated.decisions import DecisionLearner, MemoryStore, Model, ModelSettings, Unknown
from belated.decisions._encoding import Encoding
from belated.decisions._session_settings import SessionSettings
from belated.delays._registry import DELAYS
from belated.environments._registry import ENVIRONMENTS
from belated.errors import BelatedError

HUGE = [10**9, 10**13, 2**63 - 1, 2**63, -(2**63), 10**400, 1e160, 5e-324, float("nan"), float("inf"), -0.0]
#: Any value of a configuration file: sizes are small, or so large that they must be rejected.
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from(HUGE) | st.floats(-2, 2) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
#: Anything at all.
ODD = PLAIN | st.sampled_from([object(), belated.RiverSwim, b"bytes", 1j, np.array([[np.nan]]), {1, 2}])


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Make `tries` attempts on each entry point."""
    bound_memory()
    for name, (strategy, target) in targets(folder).items():
        if tally.left():
            _invent(name, strategy, target, tries, int(rng.integers(2**32)), tally)


def _invent(name: str, strategy: Any, target: Callable[[Any], object], tries: int, seed: int, tally: Tally) -> None:
    made, refused, before = 0, 0, tally.broken

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=tries, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), print_blob=False
    )
    @hypothesis.given(strategy)
    def attempt(given: Any) -> None:
        nonlocal made, refused
        made += 1
        print(f"try {name}: {ascii(given)[:300]}", flush=True)
        try:
            target(given)
        except BelatedError:
            refused += 1

    try:
        attempt()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        for each in error.exceptions if isinstance(error, BaseExceptionGroup) else [error]:
            example = " ".join(" ".join(getattr(each, "__notes__", [])).split())[:300]
            tally.breaks(f"{name}: {type(each).__name__}: {str(each)[:200]} ({example})")
    tally.held += made - (tally.broken - before)
    tally.notes.append(f"{name}: {refused} of {made} refused")


def targets(folder: Path) -> dict[str, tuple[Any, Callable[[Any], object]]]:
    """Return for each entry point a strategy for its input, and a function that calls it."""
    return {
        "specification": (SPECIFICATIONS, lambda given: belated.Experiment.from_dict(given).runs()),
        "algorithm": (_settings(AGENTS), _construct),
        "distribution": (_settings(DELAYS), _construct),
        "environment": (_settings(ENVIRONMENTS), _construct),
        "experiment": (EXPERIMENTS, lambda given: belated.Experiment(**given).runs()),
        "batch": (BATCHES, _learn),
        "decision": (st.tuples(ODD | CONTEXTS, ODD), _decide),
        "model": (MODELS, _model),
        "simulator": (st.tuples(st.integers(0, 12), CHANGES), _play),
        "command": (COMMANDS, lambda given: _call(given, folder)),
    }


def parameters(kind: Any) -> list[str]:
    """Return the names that a constructor takes."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind) if field.init]
    return [name for name, each in inspect.signature(kind).parameters.items() if each.kind is not each.VAR_KEYWORD]


def _table(field: str, kinds: Mapping[str, Any]) -> Any:
    """Return plain tables that name one of `kinds`, with some of its settings."""

    def one(name: str) -> Any:
        given = st.fixed_dictionaries({}, optional=dict.fromkeys(parameters(kinds[name]), PLAIN))
        return given.map(lambda settings: {field: name, **settings})

    return st.sampled_from(sorted(kinds)).flatmap(one)


def _settings(kinds: Mapping[str, Any]) -> Any:
    def one(name: str) -> Any:
        given = dict.fromkeys(parameters(kinds[name]), ODD)
        needed = {
            each: given.pop(each)
            for each in list(given)
            if inspect.signature(kinds[name]).parameters[each].default is inspect.Parameter.empty
        }
        return st.tuples(st.just(kinds[name]), st.fixed_dictionaries(needed, optional=given))

    return st.sampled_from(sorted(kinds)).flatmap(one)


def _construct(given: tuple[Any, dict[str, Any]]) -> None:
    kind, settings = given
    repr(kind(**settings))


SPECIFICATIONS = PLAIN | st.fixed_dictionaries(
    {
        "name": st.just("a") | PLAIN,
        "episodes": st.just(3) | PLAIN,
        "seeds": st.just(2) | PLAIN,
        "environments": PLAIN
        | st.dictionaries(st.sampled_from(["a", "", "x" * 260]), _table("environment", ENVIRONMENTS)),
        "agents": PLAIN | st.dictionaries(st.sampled_from(["a", "b/c"]), _table("algorithm", AGENTS)),
        "delays": PLAIN | st.dictionaries(st.sampled_from(["a", "\0"]), _table("distribution", DELAYS)),
    },
    optional={"record_every": PLAIN, "other": PLAIN},
)
EXPERIMENTS = st.fixed_dictionaries(
    {
        "name": st.just("a") | ODD,
        "environments": st.just(WORLD) | ODD,
        "agents": st.just({"a": AGENT}) | st.dictionaries(st.just("a"), ODD) | ODD,
        "delays": st.just(belated.Poisson(3)) | ODD,
        "episodes": st.just(3) | ODD,
        "seeds": st.just(1) | ODD,
    }
)
CONTEXTS = st.lists(st.lists(st.floats(width=64) | st.sampled_from(HUGE), min_size=2, max_size=2), max_size=3)


def _near(valid: list[Any]) -> Any:
    """Return `valid`, `valid` with one value replaced, or anything."""
    one = st.tuples(st.integers(0, len(valid) - 1), ODD).map(lambda at: [*valid[: at[0]], at[1], *valid[at[0] + 1 :]])
    return st.just(valid) | one | ODD


BATCHES = ODD | st.lists(
    st.tuples(st.integers(0, 5) | ODD, _near([0, 1, 2, 1]), _near([0, 1, 0]), _near([0.0, 0.5, 1.0])), max_size=3
)


def _learn(given: Any) -> None:
    """Learn a batch; a rejected one must leave no trace."""
    agent = AGENT.start(WORLD.problem)
    before = plain(agent.memory())
    batch = given
    if isinstance(given, list) and all(isinstance(each, tuple) and len(each) == 4 for each in given):
        batch = [belated.Feedback(episode, belated.Trajectory(*arrays)) for episode, *arrays in given]
    try:
        agent.learn(batch)
    except BelatedError:
        assert plain(agent.memory()) == before, "a refused batch was partly learned"
        raise
    assert agent.plan(np.random.default_rng(0)).actions.max() < WORLD.actions


def _decide(given: tuple[Any, Any]) -> None:
    contexts, reward = given
    learner = DecisionLearner(2, silence=Unknown())
    decision = learner.decide([[1.0, 0.0], [0.0, 1.0]])
    learned = learner.learned
    try:
        learner.feedback(decision.id, reward)
    except BelatedError:
        assert learner.learned == learned, "a refused reward was learned"
    learner.decide(contexts)


MODEL = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "mature", "seconds": 5.0}}
NEAR: list[Any] = [
    {"a": 5}, {"a": "xy"}, {"a": {}, "b": {"s": 1.0}}, {"": {}}, ["x"], ["x", "s"], "shared", 0.5, 8,
    {"kind": "unknown"}, {"kind": "by_age", "seconds": 8.0, "ages": 2}, {"seconds": 3.0}, {"decisions": 2},
]  # fmt: skip
MODELS = PLAIN | st.dictionaries(
    st.sampled_from([*parameters(ModelSettings), *parameters(Encoding), *parameters(SessionSettings)]),
    PLAIN | st.sampled_from(NEAR),
    min_size=1,
    max_size=3,
).map(lambda changes: {**MODEL, **changes})


def _model(given: Any) -> None:
    """Make a model, as PUT does, and use it."""
    model = Model("ads", ModelSettings.from_table(given), MemoryStore())
    again = ModelSettings.from_table(json.loads(model.settings.to_json()))
    assert again.to_json() == model.settings.to_json(), "the settings are not what was stored"
    made = model.decide({"x": 0.5} if "x" in model.settings.encoding.features else {})
    assert model.feedback(made.id, 1.0).status == "accepted"
    assert model.recompute() == []


class World(gymnasium.Env[Any, Any]):
    """A valid environment for a number of calls; then `changes` replace its results."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, after: int, changes: Mapping[str, Any]) -> None:
        self._left, self._changes = after, changes

    def _said(self, name: str, usual: Any) -> Any:
        self._left -= 1
        return self._changes.get(name, usual) if self._left < 0 else usual

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self._said("reset", (self._said("first", np.full(2, 0.5)), {}))

    def step(self, action: Any) -> Any:
        usual = {"observation": np.full(2, 0.5), "reward": 1.0, "terminated": False, "truncated": False, "info": {}}
        return self._said("step", tuple(self._said(name, each) for name, each in usual.items()))


CHANGES = st.dictionaries(
    st.sampled_from(["reset", "first", "step", "observation", "reward", "terminated", "truncated", "info"]),
    ODD | st.lists(st.floats(width=64), min_size=2, max_size=2).map(np.array),
    min_size=1,
    max_size=2,
)


def _play(given: tuple[int, dict[str, Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers beyond their bounds are played
        world = belated.GymEnvironment(World, horizon=3, reward_range=(0.0, 1.0), after=given[0], changes=given[1])
        agents, late = {"random": belated.RandomPolicy()}, belated.Constant(1)
        belated.run(world, agents, late, episodes=3, seeds=1, jobs=1, progress=False)


NUMBERS = st.sampled_from(["-1", "0", "2", "1e3", "x", "", "9" * 30, "nan"])
COMMANDS = st.one_of(
    st.tuples(st.just("list"), st.text(max_size=8)),
    st.tuples(st.just("show"), st.text(max_size=8)),
    st.tuples(st.just("bounds"), *[st.just(each) for each in ("-d", "3", "-H", "2", "-K")], NUMBERS, st.just("--delay"),
              st.sampled_from(["poisson:mean=x", "pareto", "poisson:mean=1e400", "poisson:mean=5", "a:b:c", ":", ""])),
    st.tuples(st.just("run"), st.just("SPEC"), st.just("--seeds"), NUMBERS, st.just("--episodes"), NUMBERS),
    st.tuples(st.just("run"), st.just("SPEC"), st.just("--jobs"), NUMBERS, st.just("--backend"),
              st.sampled_from(["threads", "thread", ""])),
    st.lists(st.text(max_size=6), max_size=3).map(lambda words: ("nothing", *words)),
)  # fmt: skip


def _call(given: tuple[str, ...], folder: Path) -> None:
    """Call the command line like a user: it may fail with a message, but never with a traceback."""
    spec = folder / "spec.toml"
    spec.write_text(
        'name = "a"\nepisodes = 3\nseeds = 1\n[environments.a]\nenvironment = "riverswim"\nstates = 3\n'
        '[agents.a]\nalgorithm = "random"\n[delays.a]\nlaw = "constant"\nvalue = 1\n',
        encoding="utf-8",
    )
    arguments = [str(spec) if each == "SPEC" else each for each in given]
    if given[0] == "run":
        arguments += ["--out", str(folder / "out"), "--quiet"]
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 2), f"exit code {result.exit_code}"
