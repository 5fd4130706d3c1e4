"""What a reader with ten seconds should take away, computed from the rows."""

from __future__ import annotations

import numpy as np

from belated.evaluation import difference
from belated.experiments import systems as declared
from belated.reports.systems.material import Material, final_regret, name_of
from belated.reports.systems.sections import line
from belated.runner import Results


def findings(material: Material) -> list[str]:
    """Return a sentence for each question that the rows at hand can answer."""
    found: list[str] = []
    for name, tell in TELLERS.items():
        if name in material.results:
            found += tell(material)
    if material.size.name != declared.FULL.name:
        found.append(
            f"This is a quick look with {material.size.seeds} seeds; `belated systems --full` plays "
            f"{declared.FULL.seeds}."
        )
    return found


def _mean(results: Results, **pick: str) -> float:
    return float(final_regret(results, **pick).mean())


def _bandits(material: Material) -> list[str]:
    results = material.results["bandits"]
    pick = {"environment": "d-10", "delay": "mean-500"}
    ordered = sorted(results.agents, key=lambda agent: _mean(results, agent=agent, **pick))
    told = ", ".join(f"{name_of(agent)} {_mean(results, agent=agent, **pick):,.0f}" for agent in ordered)
    linear = _additive(results, declared.MEAN_DELAYS, results.agents)
    return [
        f"Linear bandit, d = 10, mean delay 500, {material.size.rounds} rounds: cumulative regret {told}.",
        f"Linear bandits: the penalty of delay is additive and linear for {linear} of "
        f"{len(results.agents) * len(results.environments)} agents and dimensions; in the others, luck in exploring "
        "outweighs it.",
    ]


def _additive(results: Results, means: tuple[int, ...], agents: list[str]) -> int:
    """Count the agents and environments whose regret grows with E[τ], beyond doubt, within 10 % of a straight line."""
    count = 0
    for environment in results.environments:
        for agent in agents:
            regret = [final_regret(results, agent=agent, delay=f"mean-{m}", environment=environment) for m in means]
            _, slope, deviation = line([float(mean) for mean in means], np.stack(regret, axis=1))
            count += slope.low > 0 and deviation <= 0.1
    return count


def _conversions(material: Material) -> list[str]:
    never = material.results["conversions-never"]
    regret = {agent: _mean(never, agent=agent) for agent in never.agents}
    on_the_fly = min(("otf-linucb", "otf-lints"), key=regret.__getitem__)
    waiting = min(("pslb", "ofu"), key=regret.__getitem__)
    gap = difference(final_regret(never, agent=waiting), final_regret(never, agent=on_the_fly))
    verdict = "reproduced" if gap.low > 0 else "refuted" if gap.high < 0 else "undecided"
    return [
        "OTF methods keep learning where waiting for zeros fails (Vernade et al.): "
        f"{verdict}. Where zeros are never reported, {name_of(on_the_fly)} has regret {regret[on_the_fly]:,.0f} and "
        f"{name_of(waiting)}, which waits for feedback, {regret[waiting]:,.0f}."
    ]


def _chains(material: Material) -> list[str]:
    results = material.results["chains"]
    delay = f"mean-{declared.CHAIN_DELAYS[-2]}"
    worse, nearer = [], []
    for environment in results.environments:
        pick = {"environment": environment, "delay": delay}
        active = final_regret(results, agent="active", **pick)
        gaps = [difference(final_regret(results, agent=f"lazy-{alpha}", **pick), active) for alpha in declared.LAZY]
        worse.append(all(gap.high >= 0 for gap in gaps))
        nearer.append(abs(gaps[-1].value) <= abs(gaps[0].value))
    return [
        "Active updating is at least as good as lazy updating (Howson et al.): "
        f"{'reproduced' if all(worse) else 'refuted'} on {sum(worse)} of {len(worse)} chains.",
        f"A larger α is nearer to active updating: {'reproduced' if all(nearer) else 'refuted'} on "
        f"{sum(nearer)} of {len(nearer)} chains.",
        "The penalty of delay is additive and linear (Howson et al.) under active updating on "
        f"{_additive(results, declared.CHAIN_DELAYS, ['active'])} of {len(nearer)} chains.",
    ]


def _arbitrary(material: Material) -> list[str]:
    results = material.results["arbitrary"]
    told = []
    around = [agent for agent in results.agents if agent.startswith("multi-batch")]
    for delay in ("pareto-0.5", "half-lost"):
        random = final_regret(results, agent="random", delay=delay)
        told.append(
            sum(difference(random, final_regret(results, agent=agent, delay=delay)).low > 0 for agent in around)
        )
    better = sum(
        _mean(results, agent=f"multi-batch-{base}", delay="pareto-0.5") < _mean(results, agent=base, delay="pareto-0.5")
        for base in ("psvi", "lpsvi", "ucbvi")
    )
    return [
        f"Multi-batch agents keep learning under delays without a mean ({told[0]} of {len(around)} better than random) "
        f"and when half of the feedback is lost ({told[1]} of {len(around)}); around {better} of 3 bases the reduction "
        "has less regret than the base alone."
    ]


def _adversarial(material: Material) -> list[str]:
    results = material.results["adversarial"]
    told = []
    for environment in results.environments:
        best = min(
            (agent for agent in results.agents if agent != "random"),
            key=lambda agent: _mean(results, agent=agent, environment=environment),
        )
        told.append(f"{environment}: {name_of(best)}")
    return [f"Least regret against an adversary: {'; '.join(told)}."]


TELLERS = {
    "bandits": _bandits,
    "conversions-never": _conversions,
    "chains": _chains,
    "arbitrary": _arbitrary,
    "adversarial": _adversarial,
}
