"""Time Thompson sampling of bayesianbandits on the stream in an .npz file: `python use_bayesianbandits.py FILE`.

Once with one model for all actions, whose features are the context times the signs of the action, and once with a model
for each action, the first example of its documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.peer_scripts.rounds import Contestant, Stream, main


def contestants(given: Stream) -> Iterator[Contestant]:
    """Return both kinds of model."""
    import numpy as np
    from bayesianbandits import Arm, ContextualAgent, LipschitzContextualAgent, NormalRegressor, ThompsonSampling
    from bayesianbandits.featurizers import FunctionArmFeaturizer

    signs, precision = given.signs, 1.0 / given.noise**2

    def features(x: Any, actions: Any) -> Any:
        return x[:, :, np.newaxis] * signs[list(actions)].T[np.newaxis]

    shared = LipschitzContextualAgent(
        arms=[Arm(i) for i in range(len(signs))],
        policy=ThompsonSampling(),
        arm_featurizer=FunctionArmFeaturizer(features),
        learner=NormalRegressor(alpha=1.0, beta=precision),
        random_seed=0,
    )
    separate = ContextualAgent(
        [Arm(i, learner=NormalRegressor(alpha=1.0, beta=precision)) for i in range(len(signs))],
        ThompsonSampling(),
        random_seed=0,
    )
    yield contestant("one model for all actions", shared, given)
    yield contestant("a model for each action", separate, given)


def contestant(what: str, agent: Any, given: Stream) -> Contestant:
    """Return one agent; it remembers its action itself."""
    import numpy as np

    return Contestant(
        f"Thompson sampling, {what}",
        lambda t: int(agent.pull(given.contexts[t : t + 1])[0]),
        lambda t, action, reward: agent.update(given.contexts[t : t + 1], np.array([reward])),
    )


if __name__ == "__main__":
    main(contestants)
