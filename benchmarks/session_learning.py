"""What serving sessions as single decisions costs: returns of single decisions, by three rewards, and of a planner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from belated import AutoPSVI, FiniteMDP, Poisson, RiverSwim, run
from belated._kernels.streams import stream
from belated.decisions import MemoryStore, Model, ModelSettings, Reward, Served
from belated.environments import ShopFunnel
from belated.types import Floats
from benchmarks.measure import Measure
from benchmarks.problems import Effort

DELAY = 10.0
#: Sessions that are served side by side.
ABREAST = 10
ENVIRONMENTS: tuple[Callable[[], FiniteMDP], ...] = (lambda: RiverSwim(states=6, horizon=20), ShopFunnel)


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


def session_learning(effort: Effort) -> list[Measure]:
    """Return the mean return of the last fifth of the sessions, one value a seed."""
    sessions, seeds = (1_000, 3) if effort.patient else (100, 1)
    found = []
    for make in ENVIRONMENTS:
        environment = make()
        where = f"{environment.label}, last fifth of {sessions} sessions"
        found.append(Measure(f"{where}: the optimum", (environment.optimal_value,), ""))
        for name, paid in REWARDS.items():
            returns = [last_fifth(single(environment, paid, sessions, seed)) for seed in range(seeds)]
            found.append(Measure(f"{where}: single decisions, {name}", tuple(returns), ""))
        agents = {"served sessions, AutoPSVI": Served(), "AutoPSVI in process": AutoPSVI()}
        results = run(environment, agents, Poisson(DELAY), episodes=sessions, seeds=seeds)
        for name in agents:
            rows = results.returns(agent=name)
            found.append(Measure(f"{where}: {name}", tuple(last_fifth(row) for row in rows), ""))
    return found


def last_fifth(returns: Floats) -> float:
    return float(np.mean(returns[-(len(returns) // 5) :]))


def single(environment: FiniteMDP, paid: Callable[[Floats], Floats], sessions: int, seed: int) -> Floats:
    """Serve every step as a decision of its own, which is paid late; return the return of each session."""
    names = [str(action) for action in range(environment.actions)]
    table = {"actions": names, "categories": ["state"], "hashed": 64, "silence": {"kind": "unknown"}, "seed": seed}
    now, rng = [0.0], stream(seed, "bench")
    model = Model("m", ModelSettings.from_table(table), MemoryStore(), clock=lambda: now[0])
    transitions, rewards = environment.transitions[0], environment.rewards[0]
    returns: list[float] = []
    late: list[tuple[int, list[Reward]]] = []
    for first in range(0, sessions, ABREAST):
        now[0] += 1.0
        due = [each for arrives, some in late if arrives <= first for each in some]
        late = [each for each in late if each[0] > first]
        model.feedback_many(due)
        states = np.array([int(rng.choice(environment.states, p=environment.start)) for _ in range(ABREAST)])
        earned, ids = np.zeros((ABREAST, environment.horizon)), list[list[str]]()
        for h in range(environment.horizon):
            made = model.decide_many([{"state": str(state)} for state in states.tolist()])
            ids.append([each.id for each in made])
            for i, each in enumerate(made):
                action = int(each.action)
                mean = float(rewards[states[i], action])
                earned[i, h] = float(rng.random() < mean) if environment.bernoulli else mean
                states[i] = rng.choice(environment.states, p=transitions[states[i], action])
        for i in range(ABREAST):
            values = paid(earned[i]).tolist()
            given = [Reward(ids[h][i], value) for h, value in enumerate(values)]
            late.append((first + i + 1 + int(rng.poisson(DELAY)), given))
            returns.append(float(earned[i].sum()))
    return np.array(returns)
