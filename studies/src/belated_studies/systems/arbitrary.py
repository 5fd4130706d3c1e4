"""Arbitrary delays: the multi-batch reduction where delays have no mean and where feedback is lost."""

from __future__ import annotations

from belated.agents import MultiBatch, RandomPolicy, Settings
from belated.delays import Lossy, Pareto, Poisson
from belated.evaluation import difference
from belated.runner import Experiment
from belated_studies import cells_and_curves
from belated_studies.cells_and_curves import cell, converged, final_regret, name_of, regret_cell, regret_series
from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played
from belated_studies.systems.comparisons import by_agent, mean_regret, regret_chart
from belated_studies.systems.testbeds import Size, experiment, mdp_agents, synthetic

NO_MEAN, LOST = "pareto-0.5", "half-lost"
DELAYS = {
    "poisson-50": Poisson(50),
    "pareto-1": Pareto(1.0, 50.0),
    NO_MEAN: Pareto(0.5, 50.0),
    LOST: Lossy(Poisson(50), missing=0.5),
}
DELAY_NAMES = dict(zip(DELAYS, ["Poisson 50", "Pareto, shape 1", "Pareto, shape 0.5", "half lost"], strict=True))

#: The labels of the reduction around each base, without and with what arrives too late for its batch.
DROPPING = {base: f"multi-batch-{base}" for base in ("psvi", "lpsvi", "ucbvi")}
KEEPING = {base: f"multi-batch-{base}-all" for base in DROPPING}
NAMES = {
    **cells_and_curves.NAMES,
    **{label: f"multi-batch around {name_of(base)}" for base, label in DROPPING.items()},
    **{label: f"multi-batch around {name_of(base)}, stragglers kept" for base, label in KEEPING.items()},
}


def experiments(size: Size) -> list[Experiment]:
    """Return each base alone and with the reduction around it, under all distributions."""
    best, agents = mdp_agents(size), dict[str, Settings]()
    for base in DROPPING:
        agents[base] = best[base]
        agents[DROPPING[base]] = MultiBatch(base=best[base])
        agents[KEEPING[base]] = MultiBatch(base=best[base], drop_stragglers=False)
    return [experiment("arbitrary", size, synthetic(), {**agents, "random": RandomPolicy()}, DELAYS, slow=True)]


def section(played: Played[Size]) -> Section:
    """Return values and regret under all distributions."""
    results, size = played.results["arbitrary"], played.size
    optimum = float(results.array("optimal", agent="random", delay="poisson-50").mean())
    shown = ("psvi", DROPPING["psvi"], KEEPING["psvi"], "random")
    chart = regret_chart(
        "arbitrary-chart",
        "Delays without a mean (Pareto, shape 0.5)",
        "Cumulative regret on the synthetic MDP, mean and 95 % band over seeds.",
        "episode",
        [regret_series(results, agent, NAMES.get(agent, agent), delay=NO_MEAN) for agent in shown],
    )
    values = by_agent(
        "arbitrary-values",
        "Value upon convergence",
        f"Synthetic MDP, 20 actions; the optimum is {optimum:.2f}.",
        DELAY_NAMES,
        results.agents,
        lambda agent, distribution: cell(converged(results, agent=agent, delay=distribution)),
        NAMES,
    )
    regrets = by_agent(
        "arbitrary-regret",
        "Cumulative regret",
        f"{size.episodes} episodes, {size.slow_seeds} seeds, 95 % intervals.",
        DELAY_NAMES,
        results.agents,
        lambda agent, distribution: regret_cell(results, agent=agent, delay=distribution),
        NAMES,
    )
    paragraph = (
        "A Pareto distribution of shape 1 has the tail of a Cauchy distribution and no mean; shape 0.5 is heavier "
        "still. The reduction only needs some share of the feedback to arrive in time, so it keeps learning even "
        "there. The tables show whether it does better than the agent that it wraps."
    )
    title = "Arbitrary delays: the multi-batch reduction"
    return Section(id="arbitrary", title=title, paragraphs=[paragraph], charts=[chart], tables=[values, regrets])


def findings(played: Played[Size]) -> list[str]:
    """Return where the reduction keeps learning, and whether it helps."""
    results, around = played.results["arbitrary"], [*DROPPING.values(), *KEEPING.values()]

    def learning(delay: str) -> int:
        random = final_regret(results, agent="random", delay=delay)
        gaps = [difference(random, final_regret(results, agent=agent, delay=delay)) for agent in around]
        return sum(gap.low > 0 for gap in gaps)

    regret = {agent: mean_regret(results, agent=agent, delay=NO_MEAN) for agent in results.agents}
    better = sum(regret[label] < regret[base] for base, label in DROPPING.items())
    return [
        f"Multi-batch agents keep learning under delays without a mean ({learning(NO_MEAN)} of {len(around)} better "
        f"than random) and when half of the feedback is lost ({learning(LOST)} of {len(around)}); around {better} of "
        f"{len(DROPPING)} bases the reduction has less regret than the base alone."
    ]


ARTEFACT = Artefact(id="arbitrary", order=6, section=section, experiments=experiments, findings=findings)
