"""Play sparse rounds with river: `python sparse_river.py FILE`.

Its linear bandit keeps a matrix of all features, so it is its linear regression on the same places, trained by AdaGrad,
with five percent of the decisions at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.peer_scripts.sparse_rounds import Contestant, Rounds, main


def contestants(run: Rounds) -> Iterator[Contestant]:
    """Return one way."""
    from river import linear_model, optim

    model, rng = linear_model.LinearRegression(optim.AdaGrad(0.1), intercept_lr=0.1), random.Random(run.seed)

    def features(t: int, action: int) -> dict[int, float]:
        return dict(zip(run.places[t, action].tolist(), run.values[t, action].tolist(), strict=True))

    def decide(t: int) -> int:
        actions = range(run.places.shape[1])
        if rng.random() < 0.05:
            return rng.choice(actions)
        return max(actions, key=lambda action: model.predict_one(features(t, action)))

    def learn(t: int, action: int, reward: float) -> None:
        model.learn_one(features(t, action), reward)

    yield Contestant("ε-greedy linear regression", decide, learn)


if __name__ == "__main__":
    main(contestants)
