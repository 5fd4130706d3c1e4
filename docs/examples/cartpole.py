"""CartPole with late feedback.

An environment of Gymnasium as it is, and an agent that needs no settings and no table of states. The rewards and the
transitions of an episode reach it about five episodes late; it learns to balance the pole all the same.
"""

from belated import AutoPSVI, Poisson, RandomPolicy, run
from belated.environments import GymEnvironment

world = GymEnvironment("CartPole-v1", horizon=200)
agents = {"AutoPSVI": AutoPSVI(), "random": RandomPolicy()}
results = run(world, agents, Poisson(5), episodes=80, seeds=3, progress=False)
results.plot_returns(window=10).figure.savefig("cartpole.png", dpi=150)

print(world)
for agent in agents:
    returns = results.returns(agent=agent)
    print(f"{agent}: {returns[:, :20].mean():.0f} steps in the first episodes, {returns[:, -20:].mean():.0f} in the last")
