"""Sessions whose rewards come late, played by anybody: the worlds, the loop, and those who play.

Sixteen sessions are open at once, and each asks for its next step when it has been answered. A session's rewards are
told after as many further sessions have opened as its delay says. Visitors of a shop do not come as fast as a loop
asks: the next one comes when the plans have seen all but a few sessions, however fast the machine is.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2 as httpx
import numpy as np

from belated._kernels.streams import stream
from belated.client import AsyncClient
from belated.decisions import MemoryStore, Model, ModelSettings, Reward
from belated.delays import Poisson
from belated.environments import GymEnvironment, RiverSwim, ShopFunnel
from belated.features import Adaptive
from belated.types import Environment, Floats

AT_ONCE, UNSEEN, DELAY = 16, 32, Poisson(10)
"""Sessions that are open at once, and that have ended without being seen by the plans when the next one opens."""


def suffix_sums(rewards: Floats) -> Floats:
    return rewards[::-1].cumsum()[::-1]


def suffix_means(rewards: Floats) -> Floats:
    found: Floats = suffix_sums(rewards) / np.arange(len(rewards), 0, -1)
    return found


#: What each step of a session is paid if it is a decision of its own.
REWARDS: dict[str, Callable[[Floats], Floats]] = {
    "immediate reward": lambda rewards: rewards,
    "suffix mean": suffix_means,
    "suffix sum": suffix_sums,
}


@dataclass(frozen=True)
class World:
    """Where sessions are played."""

    name: str
    make: Callable[[], Environment]
    context: Callable[[Any], dict[str, Any]]
    """What is told of an observation."""
    settings: Mapping[str, Any]
    """How a model reads that."""
    terms: Callable[[Any], list[str]]
    """The same as indicators, for one who has no feature maps of its own."""
    left: Callable[[Any], bool] = lambda observation: False
    """Whether the session is over: nothing more can be had."""


def worlds() -> dict[str, World]:
    """Return RiverSwim of 6 states and 20 steps, the funnel of four pages, and CartPole for 200 steps."""
    cart = GymEnvironment("CartPole-v1", horizon=200)
    chosen = cart.problem.features
    assert isinstance(chosen, Adaptive)
    basis = chosen.begun
    names = ("position", "speed", "angle", "turning")

    def numbers(observation: Any) -> dict[str, Any]:
        return dict(zip(names, np.asarray(observation).tolist(), strict=True))

    def tiles(observation: Any) -> list[str]:
        return [str(place) for place in basis.encode(observation).indices.tolist()]

    def place(name: str, count: int) -> dict[str, Any]:
        return {"categories": [name], "hashed": count}

    found = (
        World(
            "RiverSwim 6, H = 20",
            lambda: RiverSwim(states=6, horizon=20),
            lambda state: {"place": str(state)},
            place("place", 6),
            lambda state: [str(state)],
        ),
        World(
            "shop funnel, H = 6",
            ShopFunnel,
            lambda state: {"page": ShopFunnel.PAGES[state]},
            place("page", 5),
            lambda state: [ShopFunnel.PAGES[state]],
            lambda state: ShopFunnel.PAGES[state] == "gone",
        ),
        World(
            "CartPole, H = 200",
            lambda: GymEnvironment("CartPole-v1", horizon=200),
            numbers,
            {"features": list(names), "basis": basis.to_dict()},
            tiles,
        ),
    )
    return {world.name: world for world in found}


@dataclass
class Played:
    """One session: what was seen and done, and what each step paid."""

    number: int
    observations: list[Any] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    terminal: bool = False


class Player(Protocol):
    """Anybody who plays sessions."""

    async def ready(self) -> None:
        """Return when the next session may open."""

    async def act(self, session: Played) -> tuple[str, int]:
        """Return an id of the next step, and its action."""

    async def end(self, session: Played) -> None:
        """Hear that a session has ended; what it paid is not known yet."""

    async def learn(self, session: Played) -> None:
        """Hear what the steps of a session paid."""


def play(world: World, player: Player, sessions: int, seed: int) -> Floats:
    """Return what each session paid, in the order in which they opened."""
    return asyncio.run(_play(world, player, sessions, seed))


async def _play(world: World, player: Player, sessions: int, seed: int) -> Floats:
    delays = DELAY.sample(stream(seed, "delay"), sessions)
    paid, waiting, numbers = np.zeros(sessions), list[tuple[int, int, Played]](), iter(range(sessions))

    async def visit(environment: Environment, number: int) -> None:
        session = Played(number)
        session.observations.append(environment.reset(seed=seed, episode=number))
        over = False
        while not over:
            name, action = await player.act(session)
            after, reward, terminated, truncated = environment.step(action)
            session.ids.append(name)
            session.actions.append(action)
            session.rewards.append(float(reward))
            session.observations.append(after)
            session.terminal = bool(terminated) or world.left(after)
            over = session.terminal or truncated or len(session.actions) == environment.problem.horizon
        paid[number] = sum(session.rewards)
        await player.end(session)
        heapq.heappush(waiting, (number + int(delays[number]), number, session))

    async def visits(environment: Environment) -> None:
        for number in numbers:
            while waiting and waiting[0][0] < number:
                await player.learn(heapq.heappop(waiting)[2])
            await player.ready()
            await visit(environment, number)

    # an environment holds the episode that is played in it, so every visitor has their own
    await asyncio.gather(*(visits(world.make()) for _ in range(AT_ONCE)))
    return paid


def settings_of(world: World, seed: int, **given: Any) -> dict[str, Any]:
    """Return the table of a model of sessions for a world, with nothing chosen but what the world is."""
    problem = world.make().problem
    return {
        "actions": [str(action) for action in range(problem.actions)],
        "horizon": problem.horizon,
        "reward_range": list(problem.reward_range),
        "silence": {"kind": "unknown"},
        "seed": seed,
        **world.settings,
        **given,
    }


class Served:
    """A model of sessions behind HTTP, asked by the client that users have."""

    def __init__(self, world: World, port: int, model: str) -> None:
        self._world, self._model = world, model
        self._client = AsyncClient(f"http://127.0.0.1:{port}", timeout=60.0)
        self._metrics = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60.0)
        self._figure = re.compile(rf'^belated_sessions_unseen{{model="{model}"}} (.*)$', re.MULTILINE)

    async def ready(self) -> None:
        while await self._unseen() > UNSEEN:
            await asyncio.sleep(0.05)

    async def _unseen(self) -> float:
        try:
            found = self._figure.search((await self._metrics.get("/metrics")).text)
        except httpx.TransportError:  # a connection that was idle has been closed
            return math.inf
        assert found is not None
        return float(found[1])

    async def act(self, session: Played) -> tuple[str, int]:
        context = self._world.context(session.observations[-1])
        made = await self._client.decide(self._model, context, session=str(session.number))
        return made.id, int(made.action)

    async def end(self, session: Played) -> None:
        context = None if session.terminal else self._world.context(session.observations[-1])
        await self._client.end(self._model, str(session.number), terminal=session.terminal, context=context)

    async def learn(self, session: Played) -> None:
        told = [{"id": name, "reward": paid} for name, paid in zip(session.ids, session.rewards, strict=True)]
        answers = await self._client.feedback_many(self._model, told)
        assert all(each.status == "accepted" for each in answers), answers


class Single:
    """Our single decisions, in process: each step is one, and is told a number that the session made of its rewards."""

    def __init__(self, world: World, credit: Callable[[Floats], Floats], seed: int) -> None:
        given = {name: value for name, value in world.settings.items() if name != "basis"}
        actions = [str(action) for action in range(world.make().problem.actions)]
        table = {"actions": actions, "silence": {"kind": "unknown"}, "seed": seed, **given}
        self._world, self._credit, self._now = world, credit, 0.0
        self._model = Model("single", ModelSettings.from_table(table), MemoryStore(), clock=self._tick)

    def _tick(self) -> float:
        self._now += 1.0
        return self._now

    async def ready(self) -> None:
        pass

    async def act(self, session: Played) -> tuple[str, int]:
        made = self._model.decide(self._world.context(session.observations[-1]))
        await asyncio.sleep(0)  # the next visitor
        return made.id, int(made.action)

    async def end(self, session: Played) -> None:
        pass

    async def learn(self, session: Played) -> None:
        told = self._credit(np.array(session.rewards)).tolist()
        self._model.feedback_many([Reward(name, paid) for name, paid in zip(session.ids, told, strict=True)])


class Elsewhere:
    """A peer in an environment of its own, which is asked line by line; it is told as `Single` is."""

    def __init__(self, world: World, credit: Callable[[Floats], Floats], process: subprocess.Popen[str]) -> None:
        self._world, self._credit, self._process = world, credit, process

    def _ask(self, **asked: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    async def ready(self) -> None:
        pass

    async def act(self, session: Played) -> tuple[str, int]:
        name = f"{session.number}.{len(session.actions)}"
        action = int(self._ask(id=name, terms=self._world.terms(session.observations[-1])))
        await asyncio.sleep(0)
        return name, action

    async def end(self, session: Played) -> None:
        pass

    async def learn(self, session: Played) -> None:
        told = self._credit(np.array(session.rewards)).tolist()
        self._ask(rewards=dict(zip(session.ids, told, strict=True)))
