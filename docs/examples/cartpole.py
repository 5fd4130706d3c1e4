"""CartPole with late feedback.

An environment of Gymnasium as it is, and an agent that needs no settings. The rewards and transitions of an episode reach
it one, or ten, episodes late: it learns to balance the pole all the same, only a little later.
"""

from belated import AutoPSVI, Constant, RandomPolicy, run
from belated.environments import GymEnvironment

world = GymEnvironment("CartPole-v1", horizon=200)
print(world)
laws = {"1 episode late": Constant(1), "10 episodes late": Constant(10)}
results = run(world, {"AutoPSVI": AutoPSVI()}, laws, episodes=100, seeds=4, progress=False)
results.plot_returns(window=10).figure.savefig("cartpole.png")

for law in laws:
    returns = results.returns(agent="AutoPSVI", delay=law)
    print(f"{law}: {returns[:, :10].mean():.0f} steps in the first ten episodes, {returns[:, -10:].mean():.0f} in the last")
