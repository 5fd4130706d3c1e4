"""Time LinTS and LinUCB of contextualbandits on the stream in an .npz file: `python use_contextualbandits.py FILE`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.peer_scripts.rounds import Contestant, Stream, main


def contestants(given: Stream) -> Iterator[Contestant]:
    """Return both policies."""
    from contextualbandits.online import LinTS, LinUCB

    yield contestant("LinTS", LinTS, given)
    yield contestant("LinUCB", LinUCB, given)


def contestant(what: str, kind: Any, given: Stream) -> Contestant:
    """Return one policy that has seen each action once."""
    import numpy as np

    contexts, actions = given.contexts, np.arange(given.rewards.shape[1])
    agent = kind(nchoices=actions.size, fit_intercept=False, random_state=1)
    agent.fit(contexts[actions], actions, given.rewards[actions, actions])
    return Contestant(
        f"{what}, a model for each action",
        lambda t: int(agent.predict(contexts[t : t + 1])[0]),
        lambda t, action, reward: agent.partial_fit(contexts[t : t + 1], np.array([action]), np.array([reward])),
    )


if __name__ == "__main__":
    main(contestants)
