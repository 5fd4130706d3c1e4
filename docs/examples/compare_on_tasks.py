"""Compare agents over several tasks.

Three environments under two delays are six tasks. Interquartile means and performance profiles show how an agent
does on all of them; the probability of improvement shows how often it beats another. All have intervals over seeds.
"""

import matplotlib.pyplot as plt
import numpy as np

from belated import AutoPSVI, Chain, Constant, DeepSea, DelayedPSRL, EpsilonGreedy, Poisson, RiverSwim, run
from belated.evaluation import interquartile_mean, performance_profile, probability_of_improvement

worlds = [RiverSwim(states=4, horizon=12), DeepSea(size=8), Chain(size=8)]
agents = {"AutoPSVI": AutoPSVI(), "PSRL": DelayedPSRL(noise=0.3), "ε-greedy": EpsilonGreedy(epsilon=0.1)}
results = run(worlds, agents, [Constant(0), Poisson(20)], episodes=60, seeds=8, progress=False)
scores = results.to_rliable()  # the value towards the end as a share of the optimum; rliable takes it as it is

plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
thresholds = np.linspace(0, 1, 101)
for agent, score in scores.items():
    profile = performance_profile(score, thresholds)
    axes.step(thresholds, profile.value, label=agent)
    axes.fill_between(thresholds, profile.low, profile.high, step="pre", alpha=0.2)
    middle = interquartile_mean(score)
    print(f"{agent:9} interquartile mean {middle.value:.2f} [{middle.low:.2f}, {middle.high:.2f}]")
axes.set(xlabel="share of the optimum", ylabel="share of runs that reach it", ylim=(0, 1.02))
axes.legend()
figure.savefig("compare_on_tasks.png", dpi=150)
better = probability_of_improvement(scores["AutoPSVI"], scores["PSRL"])
print(f"AutoPSVI ends above PSRL with probability {better.value:.2f} [{better.low:.2f}, {better.high:.2f}]")
