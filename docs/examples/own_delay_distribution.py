"""A delay distribution of your own.

An office answers within the hour during the day; at night nothing arrives before the morning. The delay depends only
on the number of the episode. Beside it play the same delays in random order; here this makes no difference.
"""

import math
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from belated import AutoPSVI, DelayDistribution, Empirical, SyntheticLinearMDP, run, simulate
from belated.testing import check_delay


@dataclass(frozen=True)
class OfficeHours(DelayDistribution):
    """Answers come within the hour from `opens` to `closes`; else when the office opens. An episode is an hour."""

    opens: int = 8
    closes: int = 18
    mean: float = math.nan

    def draw(self, rng, count, first, state):
        hour = (first + np.arange(count)) % 24
        open_now = (self.opens <= hour) & (hour < self.closes)
        return np.where(open_now, 0, (self.opens - hour) % 24), None


check_delay(OfficeHours())  # integers, the same however they are drawn, and more
day = OfficeHours().sample(np.random.default_rng(0), 24)
distributions = {"office hours": OfficeHours(), "the same delays, shuffled": Empirical(day)}
world = SyntheticLinearMDP(actions=20)
results = run(world, {"AutoPSVI": AutoPSVI()}, distributions, episodes=24 * 20, seeds=8, progress=False)

plt.style.use("belated.figure")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for label, distribution in distributions.items():
    rows = simulate(world, AutoPSVI(), distribution, episodes=72, seed=0)
    left.step(rows["episode"], rows["arrived"], where="mid", label=label)
left.set(xlabel="hour", ylabel="answers that arrive")
results.plot_regret(right, log="x")
figure.savefig("own_delay_distribution.png", dpi=150)

print("delays of a day:", *day)
for label in distributions:
    regret = results.regret_band(agent="AutoPSVI", delay=label)
    print(f"{label:26} regret {regret.value[-1]:4.0f} [{regret.low[-1]:.0f}, {regret.high[-1]:.0f}]")
