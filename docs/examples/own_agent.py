"""An agent of your own.

PSRL in NumPy: it draws a model from its posterior and plans with it. `check_agent` checks that it keeps the contract
of agents; then it plays beside the library's own PSRL, which is compiled, and beside random actions.
"""

from dataclasses import dataclass

import numpy as np

from belated import DelayedPSRL, Geometric, RandomPolicy, RiverSwim, TablePolicy, run
from belated.testing import check_agent


@dataclass(frozen=True)
class MyPSRL:
    """Dirichlet transitions and normal rewards."""

    prior: float = 1.0
    noise: float = 0.3

    def start(self, problem):
        return MyAgent(self, problem)


class MyAgent:
    def __init__(self, settings, problem):
        self.settings, self.problem = settings, problem
        self.moves = np.zeros((problem.states, problem.actions, problem.states))
        self.rewards = np.zeros((problem.states, problem.actions))

    def learn(self, batch):
        for one in [feedback.trajectory.check(self.problem) for feedback in batch]:
            np.add.at(self.moves, (one.states[:-1], one.actions, one.states[1:]), 1)
            np.add.at(self.rewards, (one.states[:-1], one.actions), one.rewards)

    def plan(self, rng):
        distribution = rng.standard_gamma(self.settings.prior + self.moves)
        distribution /= distribution.sum(axis=-1, keepdims=True)
        visits = 1 + self.moves.sum(axis=-1)
        reward = self.rewards / visits + self.settings.noise * rng.standard_normal(visits.shape) / np.sqrt(visits)
        actions = np.empty((self.problem.horizon, self.problem.states), dtype=np.int64)
        value = np.zeros(self.problem.states)
        for h in reversed(range(self.problem.horizon)):
            q = reward + distribution @ value
            actions[h], value = q.argmax(axis=1), q.max(axis=1)
        return TablePolicy(actions)


if __name__ == "__main__":
    check_agent(MyPSRL())
    agents = {"my PSRL": MyPSRL(), "the library's": DelayedPSRL(noise=0.3), "random": RandomPolicy()}
    results = run(RiverSwim(states=4, horizon=12), agents, Geometric(10), episodes=300, seeds=6, progress=False)
    results.plot_regret(log="xy").figure.savefig("own_agent.png", dpi=150)
    for row in results.summary().iter_rows(named=True):
        print(f"{row['agent']:13} regret {row['regret']:5.0f} [{row['regret_low']:.0f}, {row['regret_high']:.0f}]")
