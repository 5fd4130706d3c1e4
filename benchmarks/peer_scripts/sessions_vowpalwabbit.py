"""Decide step by step with SquareCB of VowpalWabbit at its defaults: `python sessions_vowpalwabbit.py ACTIONS SEED`.

Each line that it reads is a decision to make, {"id", "terms"}, or rewards to learn, {"rewards": {id: reward}}; each is
answered by a line. A state is its terms, an action has its name, and the products of both are weights for each action:
the way of its documentation.
"""

from __future__ import annotations

import json
import random
import sys


def main(actions: int, seed: int) -> None:
    """Answer until there is nothing more to read."""
    import vowpalwabbit

    learner = vowpalwabbit.Workspace("--cb_explore_adf --squarecb -q ca --quiet")
    names = [f"|a {action}" for action in range(actions)]
    rng, made = random.Random(seed), dict[str, tuple[str, int, float]]()
    for line in sys.stdin:
        asked = json.loads(line)
        if "terms" in asked:
            shared = f"shared |c {' '.join(asked['terms'])}"
            probabilities = learner.predict([shared, *names])
            action = rng.choices(range(actions), probabilities)[0]
            made[asked["id"]] = shared, action, probabilities[action]
            answer = action
        else:
            for name, reward in asked["rewards"].items():
                shared, action, probability = made.pop(name)
                labelled = [shared, *names]
                labelled[1 + action] = f"0:{-reward}:{probability} {names[action]}"  # it learns costs
                learner.learn(labelled)
            answer = len(asked["rewards"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
