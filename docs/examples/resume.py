"""Save an agent and resume.

An agent in your own loop is saved in the middle together with its random stream, and loaded again. It continues as
if nothing had happened, to the last bit. You have to keep the feedback in flight yourself: here it is in a queue.
"""

import pickle

import matplotlib.pyplot as plt
import numpy as np

from belated import DelayedPSVI, Feedback, FeedbackQueue, Poisson, RiverSwim, load_agent, save_agent

river, episodes, stop = RiverSwim(states=4, horizon=12), 600, 250
delays = Poisson(10).sample(np.random.default_rng(2), episodes)


def play(agent, rng, dynamics, buffer, first, last):
    """Play episodes and return the regret of each."""
    regrets = []
    for episode in range(first, last):
        agent.learn([Feedback(*late) for late in buffer.arrived(episode)])
        policy = agent.plan(rng)
        buffer.add(episode, delay=int(delays[episode]), item=river.rollout(policy, dynamics))
        regrets.append(river.optimal_value - river.value(policy))
    return regrets


def begin():
    agent = DelayedPSVI(noise=0.3).start(river.problem)
    return agent, np.random.default_rng(0), np.random.default_rng(1), FeedbackQueue()


whole = np.cumsum(play(*begin(), 0, episodes))

agent, rng, dynamics, buffer = begin()
before = play(agent, rng, dynamics, buffer, 0, stop)
save_agent("agent.npz", agent, rng)
world = pickle.dumps((dynamics, buffer))

loaded, rng = load_agent("agent.npz")  # days later, in another process
after = play(loaded, rng, *pickle.loads(world), stop, episodes)
parts = np.cumsum([*before, *after])

plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
axes.plot(whole, linewidth=6, alpha=0.3, label="never stopped")
axes.plot(parts[:stop], color="C1", label="saved")
axes.plot(range(stop, episodes), parts[stop:], color="C2", label="loaded")
axes.set(xlabel="episode", ylabel="cumulative regret")
axes.legend()
figure.savefig("resume.png", dpi=150)
print("the same regret in every episode:", bool((whole == parts).all()))
