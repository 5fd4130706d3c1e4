"""What the runs of the paper cost, so that progress can say how long they will take."""

from __future__ import annotations

from belated.agents import DelayedLPSVI, MultiBatch
from belated.runner import Run

#: CPU microseconds of an episode with d = 10, H = 20 and N = 40 on one core of a server: by the sampler of a chain, of
#: the multi-batch reduction, and of all others.
CHAINS, BATCHES, OTHERS = {"plain": 230.0, "preconditioned": 85.0, "collapsed": 75.0}, 170.0, 20.0


def seconds(run: Run) -> float:
    """Return CPU seconds of a run, about.

    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> seconds(Run(RiverSwim(), DelayedPSVI(), Poisson(5), episodes=5000, seed=0))
    0.1
    """
    agent = run.algorithm
    each = CHAINS[agent.sampler] if isinstance(agent, DelayedLPSVI) else OTHERS
    return 1e-6 * run.episodes * (BATCHES if isinstance(agent, MultiBatch) else each)
