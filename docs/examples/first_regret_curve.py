"""A first regret curve, in three lines.

Three agents swim up a river, with feedback about ten episodes late. A curve that has become flat belongs to an
agent that has learned; the bands are 95 % intervals over seeds. AutoPSVI has nothing to set; ε was not
searched here.
"""

from belated import AutoPSVI, EpsilonGreedy, Poisson, RandomPolicy, RiverSwim, run

agents = {"AutoPSVI": AutoPSVI(), "ε-greedy": EpsilonGreedy(epsilon=0.1), "random": RandomPolicy()}
results = run(RiverSwim(states=4, horizon=12), agents, Poisson(10), episodes=1000, seeds=8, progress=False)
results.plot_regret().figure.savefig("first_regret_curve.png", dpi=150)

for row in results.summary().iter_rows(named=True):
    print(f"{row['agent']:9} regret {row['regret']:6.0f} [{row['regret_low']:.0f}, {row['regret_high']:.0f}]")
