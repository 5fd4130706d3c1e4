"""Play sparse rounds with VowpalWabbit at its defaults: `python sparse_vowpalwabbit.py FILE`.

Places are the hashes of its features themselves, in a table of as many bits. SquareCB is its recommended exploration;
bagging, of ten members, is nearest to ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.peer_scripts.sparse_rounds import Contestant, Rounds, main


def contestants(run: Rounds) -> Iterator[Contestant]:
    """Return two ways to explore."""
    import vowpalwabbit

    for name, exploration in {"SquareCB": "--squarecb", "bag of 10": "--bag 10"}.items():
        learner = vowpalwabbit.Workspace(
            f"--cb_explore_adf {exploration} -b {run.bits} --quiet --random_seed {run.seed}"
        )
        rng, drawn, shown = random.Random(run.seed), dict[int, float](), dict[int, list[str]]()

        def decide(t: int, learner=learner, rng=rng, drawn=drawn, shown=shown) -> int:  # type: ignore[no-untyped-def]
            lines = shown[t] = [
                "| " + " ".join(f"{place}:{value:.6g}" for place, value in zip(places, values, strict=True))
                for places, values in zip(run.places[t].tolist(), run.values[t].tolist(), strict=True)
            ]
            probabilities = learner.predict(lines)
            action = rng.choices(range(len(lines)), probabilities)[0]
            drawn[t] = probabilities[action]
            return int(action)

        def learn(t: int, action: int, reward: float, learner=learner, drawn=drawn, shown=shown) -> None:  # type: ignore[no-untyped-def]
            labelled = shown.pop(t)
            labelled[action] = f"0:{-reward}:{drawn.pop(t)} {labelled[action]}"  # it learns costs
            learner.learn(labelled)

        yield Contestant(name, decide, learn)


if __name__ == "__main__":
    main(contestants)
