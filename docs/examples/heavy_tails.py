"""Heavy tails.

Four distributions with the same median delay of 50 episodes and very different tails; the last has no mean at all.
The tail costs nothing here, because an agent plans with what has arrived and does not wait. What matters is how
soon the first feedback arrives, and a distribution with a long tail has more early arrivals.
"""

import matplotlib.pyplot as plt

from belated import AutoPSVI, Constant, Geometric, Pareto, Poisson, SyntheticLinearMDP, run

distributions = {
    "constant": Constant(50),
    "Poisson": Poisson(50),
    "geometric": Geometric(72),
    "Pareto, no mean": Pareto(shape=1, scale=50.5, kind="lomax"),
}
results = run(
    SyntheticLinearMDP(actions=20), {"AutoPSVI": AutoPSVI()}, distributions, episodes=2000, seeds=8, progress=False
)

plt.style.use("belated.figure")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
results.plot_delays(left)
results.plot_regret(right, log="x")
figure.savefig("heavy_tails.png", dpi=150)

for name, distribution in distributions.items():
    late = (results.array("delay", agent="AutoPSVI", delay=name) > 2000).mean()
    regret = results.regret_band(agent="AutoPSVI", delay=name)
    print(
        f"{name:16} median {distribution.quantile(0.5)}, mean {distribution.mean:5.0f}, later than the run {late:5.1%}",
        end="",
    )
    print(f", regret {regret.value[-1]:4.0f} [{regret.low[-1]:.0f}, {regret.high[-1]:.0f}]")
