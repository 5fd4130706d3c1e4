"""Time LinTS and LinUCB of mabwiser on the stream in an .npz file: `python use_mabwiser.py FILE`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.peer_scripts.rounds import Contestant, Stream, main


def contestants(given: Stream) -> Iterator[Contestant]:
    """Return both policies."""
    from mabwiser.mab import LearningPolicy

    yield contestant("LinTS", LearningPolicy.LinTS(alpha=1.0), given)
    yield contestant("LinUCB", LearningPolicy.LinUCB(alpha=1.0), given)


def contestant(what: str, policy: Any, given: Stream) -> Contestant:
    """Return one policy that has seen each action once: it wants some data to start."""
    from mabwiser.mab import MAB

    contexts, actions = given.contexts, list(range(given.rewards.shape[1]))
    agent = MAB(actions, policy, seed=0)
    agent.fit(actions, [float(given.rewards[i, i]) for i in actions], contexts[actions])
    return Contestant(
        f"{what}, a model for each action",
        lambda t: int(agent.predict(contexts[t : t + 1])),
        lambda t, action, reward: agent.partial_fit([action], [reward], contexts[t : t + 1]),
    )


if __name__ == "__main__":
    main(contestants)
