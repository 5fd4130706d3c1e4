"""CartPole with late feedback.

An unchanged Gymnasium environment, and an agent that needs no settings and no table of states. The feedback of an
episode reaches it about five episodes late, and it still learns to balance the pole.
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
    first, last = returns[:, :20].mean(), returns[:, -20:].mean()
    print(f"{agent:8} {first:.0f} steps in the first twenty episodes, {last:.0f} in the last")
