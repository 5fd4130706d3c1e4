"""Play tables with Thompson sampling of bayesianbandits: `python learn_bayesianbandits.py FILE`.

Its contextual agent with a model for each action, as its documentation begins, and with the model that estimates the
noise, which is the one that has defaults.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.peer_scripts.tables import Contestant, Run, main


def contestants(run: Run) -> Iterator[Contestant]:
    """Return its agent at its defaults; if it should forget, it does by its documented decay, once a round."""
    import numpy as np
    from bayesianbandits import Arm, ContextualAgent, NormalInverseGammaRegressor, ThompsonSampling

    arms = [Arm(action, learner=NormalInverseGammaRegressor()) for action in range(run.actions)]
    agent = ContextualAgent(arms, ThompsonSampling(), random_seed=run.seed)
    rate = 0.5 ** (1.0 / run.half_life) if run.half_life else 1.0

    def decide(t: int) -> int:
        if rate < 1.0:
            agent.decay(decay_rate=rate)
        return int(agent.pull(run.rows[t : t + 1])[0])

    def learn(t: int, action: int, reward: float) -> None:
        agent.select_for_update(action).update(run.rows[t : t + 1], np.array([reward]))

    yield Contestant("NormalInverseGammaRegressor()", decide, learn)


if __name__ == "__main__":
    main(contestants)
