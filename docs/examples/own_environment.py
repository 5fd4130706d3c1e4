"""An environment of your own.

A machine wears out while it runs, and its inspections are reported days later. Two arrays make an environment:
transition probabilities and rewards. The best policy is then known, and every regret is exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from belated import AutoPSVI, DelayedPSRL, FiniteMDP, Poisson, RandomPolicy, run

transitions = np.zeros((5, 2, 5))  # [degree of wear, action, next degree]; a machine of degree 4 is broken
transitions[:, 1, 0] = 1.0  # action 1 repairs it
transitions[:, 0] = 0.6 * np.eye(5) + 0.4 * np.eye(5, k=1)  # action 0 runs it on
transitions[4, 0, 4] = 1.0
rewards = np.zeros((5, 2))
rewards[:, 0] = [1.0, 0.9, 0.7, 0.4, 0.0]

machine = FiniteMDP(transitions, rewards, horizon=20, name="machine")
print(machine)
print("the best policy repairs from degree", int(machine.optimal_policy().actions[0].argmax()), end=" ")
print(f"on and earns {machine.optimal_value:.2f} of {machine.horizon}")

agents = {"AutoPSVI": AutoPSVI(), "PSRL": DelayedPSRL(noise=0.1), "random": RandomPolicy()}
results = run(machine, agents, Poisson(5), episodes=300, seeds=8, progress=False)
plt.style.use("belated.figure")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
results.plot_value(left)
results.plot_regret(right, log="xy")
figure.savefig("own_environment.png", dpi=150)
for agent in agents:
    print(f"{agent:8} regret {results.regret_band(agent=agent).value[-1]:6.1f} after 300 episodes")
