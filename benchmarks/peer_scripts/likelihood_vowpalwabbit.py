"""Play rounds of a context and what each action brings with VowpalWabbit: `python likelihood_vowpalwabbit.py FILE`.

SquareCB and a bag of ten, at their defaults; the context is shared, and its products with the action are weights.
"""

from __future__ import annotations

import json
import random
import sys


def main() -> None:
    """Print the actions of each run, by way to explore."""
    import numpy as np
    import vowpalwabbit

    with np.load(sys.argv[1]) as file:
        contexts, rewards = file["contexts"], file["rewards"]
    found: dict[str, list[list[int]]] = {"SquareCB": [], "bag of 10": []}
    for seed in range(len(contexts)):
        shown = [
            f"shared |c {' '.join(f'{i}:{value:.6g}' for i, value in enumerate(x))}" for x in contexts[seed, :, 1:]
        ]
        names = [f"|a {action}" for action in range(rewards.shape[2])]
        for way, exploration in {"SquareCB": "--squarecb", "bag of 10": "--bag 10"}.items():
            learner = vowpalwabbit.Workspace(f"--cb_explore_adf {exploration} -q ca --quiet --random_seed {seed}")
            rng, chosen = random.Random(seed), []
            for t, context in enumerate(shown):
                probabilities = learner.predict([context, *names])
                action = rng.choices(range(len(names)), probabilities)[0]
                labelled = [context, *names]
                labelled[1 + action] = f"0:{-rewards[seed, t, action]}:{probabilities[action]} {names[action]}"
                learner.learn(labelled)
                chosen.append(action)
            found[way].append(chosen)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
