"""Time LinUCBDisjoint of river on the stream in an .npz file: `python use_river.py FILE`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.peer_scripts.rounds import Contestant, Stream, main


def contestants(given: Stream) -> Iterator[Contestant]:
    """Return its only way."""
    from river import bandit

    actions = list(range(given.rewards.shape[1]))
    contexts = [dict(enumerate(map(float, row))) for row in given.contexts]  # what it takes; not timed
    agent: Any = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0 / given.noise**2, seed=0)
    yield Contestant(
        "LinUCBDisjoint, a model for each action",
        lambda t: int(agent.pull(actions, context=contexts[t])),
        lambda t, action, reward: agent.update(action, contexts[t], reward),
    )


if __name__ == "__main__":
    main(contestants)
