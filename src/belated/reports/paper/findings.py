"""The sentences at the top of the report, each computed from the rows it speaks of."""

from __future__ import annotations

from belated.evaluation import episodes_to_best, upon_convergence
from belated.experiments.paper import BLOCKS, DELAYS, SIZES
from belated.experiments.timing import Timing, exponent
from belated.reports.paper.material import NAMES, Material
from belated.studies.paper import published


def findings(material: Material) -> list[str]:
    """Return what a reader should take away, as far as it was played."""
    sentences = []
    if "table-2-literal" in material.results:
        sentences += [_returns(material, block) for block in BLOCKS]
    if "sizes-tuned" in material.results:
        sentences.append(_episodes(material))
    if "figure-3-literal" in material.results:
        sentences += [_riverswim(material, block) for block in BLOCKS]
    if material.timings:
        sentences.append(_cost(material.timings))
    return sentences


def _cost(timings: list[Timing]) -> str:
    exact, plain = "PSVI, rank one", "LPSVI, plain"
    seconds = {(timing.variant, timing.dimension): timing.seconds for timing in timings}
    ratios = [seconds[plain, d] / seconds[exact, d] for variant, d in seconds if variant == exact]
    return (
        f"Time per episode grows like d^{exponent(timings, exact):.1f} for exact draws with rank-one updates and like "
        f"d^{exponent(timings, plain):.1f} for plain Langevin chains (paper: d³ and d); a plain chain takes "
        f"{min(ratios):.1f} to {max(ratios):.1f} times as long as an exact draw."
    )


def _returns(material: Material, block: str) -> str:
    results = material.results[f"table-2-{block}"]
    parts = []
    for agent in ("psvi", "lpsvi", "ucbvi"):
        ends = [upon_convergence(results.array("value", agent=agent, delay=delay)).estimate.value for delay in DELAYS]
        theirs = [published.RETURN_BY_DELAY[agent][delay].value for delay in DELAYS]
        parts.append(
            f"{NAMES[agent]} {' / '.join(f'{end:.2f}' for end in ends)} "
            f"(paper {' / '.join(f'{value:.2f}' for value in theirs)})"
        )
    named = "With the printed hyper-parameters" if block == "literal" else "Tuned"
    return f"**{named}**, returns under multinomial / Poisson / Pareto delays, of 11.96: {', '.join(parts)}."


def _episodes(material: Material) -> str:
    results = material.results["sizes-tuned"]
    parts = []
    for agent in ("psvi-0.1", "lpsvi", "ucbvi"):
        found = [episodes_to_best(results.array("value", agent=agent, environment=f"size-{pairs}")) for pairs in SIZES]
        theirs = [published.EPISODES_BY_SIZE[agent][pairs].value for pairs in SIZES]
        parts.append(
            f"{NAMES[agent]} {' / '.join(map(str, found))} (paper {' / '.join(f'{value:.0f}' for value in theirs)})"
        )
    return f"**Tuned**, episodes to the best return for |S||A| = 20 / 40 / 100 / 200: {', '.join(parts)}."


def _riverswim(material: Material, block: str) -> str:
    results = material.results[f"figure-3-{block}"]
    regrets = {agent: float(results.regret(agent=agent)[:, -1].mean()) for agent in ("psvi", "lpsvi", "ucbvi")}
    listed = ", ".join(f"{NAMES[agent]} {regret:,.0f}" for agent, regret in regrets.items())
    holds = max(regrets["psvi"], regrets["lpsvi"]) < regrets["ucbvi"]
    ordered = "as the paper says" if holds else "against what the paper says"
    return f"RiverSwim, {block}: regret {listed}; {ordered}."
