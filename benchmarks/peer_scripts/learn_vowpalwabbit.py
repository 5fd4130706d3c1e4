"""Play tables with SquareCB of VowpalWabbit at its defaults: `python learn_vowpalwabbit.py FILE`.

The context is shared, an action has its name, and the products of both are weights for each action: the way of its
documentation. The name alone is the action's constant. It has no decay.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.peer_scripts.tables import Contestant, Run, main


def contestants(run: Run) -> Iterator[Contestant]:
    """Return its recommended exploration, at its defaults."""
    import vowpalwabbit

    learner = vowpalwabbit.Workspace("--cb_explore_adf --squarecb -q ca --quiet")
    contexts = [f"shared |c {' '.join(f'{i}:{value:.6g}' for i, value in enumerate(row))}" for row in run.rows[:, 1:]]
    names = [f"|a {action}" for action in range(run.actions)]
    rng, drawn = random.Random(run.seed), list[float]()

    def decide(t: int) -> int:
        probabilities = learner.predict([contexts[t], *names])
        action = rng.choices(range(run.actions), probabilities)[0]
        drawn.append(probabilities[action])
        return action

    def learn(t: int, action: int, reward: float) -> None:
        labelled = [contexts[t], *names]
        labelled[1 + action] = f"0:{-reward}:{drawn[t]} {names[action]}"  # it learns costs
        learner.learn(labelled)

    yield Contestant("SquareCB", decide, learn)


if __name__ == "__main__":
    main(contestants)
