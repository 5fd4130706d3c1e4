"""What a delay costs.

In theory, feedback that arrives m episodes late adds regret in proportion to m, however long the run is. The
measured regret lies on a line over the mean delay, to within the intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

from belated import AutoPSVI, Poisson, SyntheticLinearMDP, run
from belated.evaluation import mean_interval

means = [1, 25, 50, 75, 100, 125, 150]
distributions = {str(mean): Poisson(mean) for mean in means}
results = run(
    SyntheticLinearMDP(actions=20), {"agent": AutoPSVI()}, distributions, episodes=1000, seeds=6, progress=False
)
regrets = [results.regret(agent="agent", delay=name)[:, -1] for name in distributions]
slope, base = np.polyfit(means, np.mean(regrets, axis=1), 1)

plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for mean, regret in zip(means, map(mean_interval, regrets), strict=True):
    reach = [[regret.value - regret.low], [regret.high - regret.value]]
    axes.errorbar(mean, regret.value, reach, fmt="o", capsize=3, color="C0")
axes.plot(means, base + slope * np.array(means), color="C1", label=f"{base:.0f} + {slope:.1f} × mean delay")
axes.set(xlabel="mean delay in episodes", ylabel="regret after 1000 episodes")
axes.legend()
figure.savefig("what_delay_costs.png", dpi=150)
print(f"each episode of delay costs {slope:.1f}; a blind episode costs {results.frame['optimal'][0]:.1f} at most")
