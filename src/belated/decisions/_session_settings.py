"""Settings for models of sessions: their length, when they end, and the agent that plans them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from belated._util.plugins import reading
from belated._util.validate import choice, integer, real, refuse
from belated.decisions._operations import LARGEST
from belated.errors import BelatedError
from belated.features import Features, features_from_dict
from belated.types import Algorithm, SaysWhereItPlays, SimulatorProblem, SparseRows, SparseVector

if TYPE_CHECKING:
    from belated.agents._plan_sets import PlansSets

#: Maximum number of steps of a session, and maximum idle time in seconds.
MOST_STEPS, LONGEST_IDLE = 10_000, 366 * 86400.0
CUT, TERMINAL = "cut", "terminal"


class Encoded(NamedTuple):
    """Feature map for states that are already encoded."""

    size: int

    def encode(self, observation: Any) -> SparseVector | SparseRows:
        assert isinstance(observation, SparseVector | SparseRows)
        return observation


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """Settings of sessions, as part of the model's own table; `horizon` makes it a model of sessions."""

    horizon: int
    """The maximum number of steps of a session."""
    idle: float = 1800.0
    """Seconds without a step after which a session ends."""
    agent: str | Mapping[str, Any] = "auto-psvi"
    """The planner: the name of an agent that plays in simulators, or a table with its name as `agent` and its
    settings."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Minimum and maximum reward of one step."""
    basis: Mapping[str, Any] | None = None
    """A feature map for the numbers of the context, such as {features = "tiles", low = [0.0], high = [1.0]}."""
    leaving: str = CUT
    """How an idle session ends: "cut" or "terminal"."""

    def __post_init__(self) -> None:
        integer("horizon", self.horizon, at_least=1, at_most=MOST_STEPS)
        object.__setattr__(self, "idle", real("idle", self.idle, above=0.0, at_most=LONGEST_IDLE))
        choice("leaving", self.leaving, (CUT, TERMINAL))
        span: Any = self.reward_range
        if not isinstance(span, list | tuple) or len(span) != 2:
            raise refuse("reward_range", span, "the minimum and maximum reward of one step")
        low, high = (real("each of reward_range", each, at_least=-LARGEST, at_most=LARGEST) for each in span)
        if not low < high:
            raise refuse("reward_range", span, "two numbers, minimum below maximum")
        object.__setattr__(self, "reward_range", (low, high))
        if self.basis is not None and not isinstance(self.basis, Mapping):
            raise refuse("basis", self.basis, 'a table such as {features = "tiles", low = [0.0], high = [1.0]}')
        if not isinstance(self.agent, str) and not (isinstance(self.agent, Mapping) and "agent" in self.agent):
            raise refuse("agent", self.agent, 'a name, or a table such as {agent = "psvi", width = 0.5}')
        self.start(SimulatorProblem(Encoded(1), 1, actions=1, reward_range=self.reward_range))
        self.features()

    def algorithm(self) -> Algorithm:
        """Return the algorithm that `agent` names, which must be built in or registered by a plugin."""
        from belated.agents import AGENTS, agent_from_dict
        from belated.agents._registry import KIND

        given = {"agent": self.agent} if isinstance(self.agent, str) else dict(self.agent)
        name = given.pop("agent")
        with reading([]):
            if not isinstance(name, str) or (":" not in name and name not in AGENTS and name not in KIND.names()):
                choice("agent", name, serving())
            made = agent_from_dict({"algorithm": name, **given})
        if not isinstance(made, SaysWhereItPlays) or made.plays not in ("both", "features"):
            raise refuse("agent", name, "an agent that plays in simulators")
        return made

    def start(self, problem: SimulatorProblem) -> PlansSets:
        """Return a new agent whose plans can be drawn as sets."""
        from belated.agents._plan_sets import PlansSets

        agent = self.algorithm().start(problem)
        if not isinstance(agent, PlansSets):
            raise refuse(
                "agent",
                self.agent,
                "an agent with a method plan_set, whose plans are a function of what it has learned: the model decides "
                "when to plan, so instead of a wrapper such as RareSwitching serve the wrapped algorithm",
            )
        return agent

    def features(self) -> Features | None:
        """Return the feature map for the numbers of the context, if there is one."""
        if self.basis is None:
            return None
        with reading([]):
            return features_from_dict(self.basis)

    def to_table(self) -> dict[str, Any]:
        """Return the settings as keys of a model's table."""
        table = {each.name: getattr(self, each.name) for each in fields(self)}
        table["reward_range"] = list(self.reward_range)
        table["agent"] = self.agent if isinstance(self.agent, str) else dict(self.agent)
        if self.basis is None:
            del table["basis"]
        else:
            table["basis"] = dict(self.basis)
        return table


def serving() -> list[str]:
    """Return the names of the built-in agents that can serve sessions."""
    from belated.agents import AGENTS

    found = []
    for name in AGENTS:
        with suppress(BelatedError):
            found.append(str(SessionSettings(horizon=1, agent=name).agent))
    return found


SESSION_KEYS = tuple(each.name for each in fields(SessionSettings))
