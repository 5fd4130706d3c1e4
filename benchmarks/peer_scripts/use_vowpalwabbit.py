"""Time SquareCB of VowpalWabbit on the stream in an .npz file: `python use_vowpalwabbit.py FILE`.

It has one linear model for all actions, whose features are the context times the signs of the action. Its lines of text
are made beforehand and are not part of its time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.peer_scripts.rounds import Contestant, Stream, main


def contestants(given: Stream) -> Iterator[Contestant]:
    """Return its recommended exploration, at its defaults."""
    import numpy as np
    import vowpalwabbit

    learner = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
    table = given.contexts[:, np.newaxis] * given.signs
    lines = [["|x " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(row)) for row in rows] for rows in table]
    rng, drawn = random.Random(0), [0.0]

    def decide(t: int) -> int:
        probabilities = learner.predict(lines[t])
        action = rng.choices(range(len(probabilities)), probabilities)[0]
        drawn[0] = probabilities[action]
        return action

    def learn(t: int, action: int, reward: float) -> None:
        labelled = list(lines[t])
        labelled[action] = f"0:{-reward}:{drawn[0]} {labelled[action]}"  # it learns costs
        learner.learn(labelled)

    yield Contestant("SquareCB, one model for all actions", decide, learn)


if __name__ == "__main__":
    main(contestants)
