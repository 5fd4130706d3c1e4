"""The MDP testbeds of `belated systems`: regret beside that of its tuned agents."""

from __future__ import annotations

from functools import cache, partial

from belated.delays import Constant, Poisson
from belated.environments import Chain
from belated_studies.exploration.problems import Bar, Problem, searched
from belated_studies.exploration.section import artefact
from belated_studies.systems import arbitrary, chains, testbeds

EPISODES = testbeds.FULL.episodes
NEAR = Bar(regret=1.2, source="the best agents of the study of systems")


@cache
def problems() -> tuple[Problem, ...]:
    """Return the synthetic MDP under all distributions of that study, its chains, and its adversaries."""
    best = {
        "psvi-0.1" if name == "psvi" else name: agent
        for name, agent in testbeds.mdp_agents(testbeds.FULL).items()
        if name != "multi-batch"
    }
    distributions = arbitrary.DELAYS
    one = Problem(
        name="synthetic MDP, 20 actions",
        label="testbed-synthetic",
        make=testbeds.synthetic,
        episodes=EPISODES,
        delays=distributions,
        bars=dict.fromkeys(distributions, NEAR),
        others=best,
        searches=dict.fromkeys(("psvi-0.1", "lpsvi", "ucbvi"), "synthetic"),
    )
    return one, *(_chain(length) for length in chains.CHAINS), *(_adversary(name) for name in testbeds.adversaries())


def _chain(length: int) -> Problem:
    means = chains.DELAYS
    delays = {label: Poisson(mean) if mean else Constant(0) for mean, label in means.items()}
    return Problem(
        name=f"chain of {length}",
        label=f"testbed-chain-{length}",
        make=partial(Chain, length),
        episodes=EPISODES,
        delays=delays,
        bars=dict.fromkeys(delays, NEAR),
        **searched("chain"),
        small=length == min(chains.CHAINS),
    )


def _adversary(name: str) -> Problem:
    return Problem(
        name=f"adversarial MDP, {name}",
        label=f"testbed-{name}",
        make=lambda: testbeds.adversaries()[name],
        episodes=EPISODES,
        delays=testbeds.POISSON,
        bars=dict.fromkeys(testbeds.POISSON, NEAR),
        **searched("adversarial"),
    )


ARTEFACT = artefact(
    "testbeds",
    7,
    "The testbeds of the study of systems",
    [
        "The bar is 1.2 times the lowest regret of the tuned agents of that study. Its wrappers, multi-batch and rare "
        "switching, are left out: they run in Python, and wrap the same agents.",
        "One constant of AutoPSVI was changed after it had been played against these adversaries: how much evidence "
        "of a change it needs before it forgets. With the first value, 20, its regret was 385 in the trap, 9 under "
        "drift, and 351, above the bar, where rewards switch. The value is now 22, chosen on sixteen other tables of "
        "each kind.",
    ],
    problems,
    regret=True,
    curves=False,
)
