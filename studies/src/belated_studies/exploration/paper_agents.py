"""The paper's own agents in simulators, tuned, beside the untuned one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

from belated.environments import GymEnvironment
from belated.runner import Results
from belated_studies.exploration.problems import Problem, Size, chosen, searched
from belated_studies.exploration.rows import Line, line_of, lines, timing
from belated_studies.exploration.section import NAMES, numbers_table, return_charts, searches_table
from belated_studies.reports.document import Cell, Section
from belated_studies.study import Artefact, Played

ID = "paper-agents"
TITLE = "The paper's agents in simulators"


@cache
def problems() -> tuple[Problem, ...]:
    """Return the problems; of each, the agents with the settings that its search has found."""
    cart = partial(GymEnvironment, "CartPole-v1", horizon=200)
    return (
        _problem("MountainCar", "mountain-car", partial(GymEnvironment, "MountainCar-v0"), 300, None, small=True),
        _problem("CartPole, H = 200", "cart-pole", cart, 300, 200.0, small=True),
        _problem("Acrobot", "acrobot", partial(GymEnvironment, "Acrobot-v1"), 100, None),
    )


def _problem(
    name: str, search: str, make: partial[GymEnvironment], episodes: int, optimum: float | None, small: bool = False
) -> Problem:
    return Problem(
        name=name,
        label=f"paper-{search}",
        make=make,
        episodes=episodes,
        bars={},
        optimum=optimum,
        small=small,
        share=1.0 if small else 0.3,  # an episode of 500 steps takes long
        **searched(search, f"{search}-greedy"),
    )


def section(played: Played[Size]) -> Section:
    """Return every agent's returns and times, and the curves."""
    found = lines(played, problems(), f"{ID}-times")
    return Section(
        id=ID,
        title=TITLE,
        paragraphs=[
            "Delayed-PSVI, Delayed-LPSVI (preconditioned) and Delayed-UCBVI, on the automatic features, with one "
            "regression for all steps. Their settings won searches of the same size for each (`belated tune "
            "mountain-car`, `cart-pole`, `acrobot`: six candidates each, on other seeds); ε-greedy and Q-learning "
            "have searches of the same size, and AutoPSVI has nothing to search. LSVI-PHE is left out: it solves a "
            "linear system for each draw and takes too long. Every agent keeps a plan until the episodes played since "
            "have paid for the next one."
        ],
        tables=[
            numbers_table(ID, played, problems(), found, False),
            *searches_table(ID, chosen(problems(), played.size)),
        ],
        charts=[chart for each in chosen(problems(), played.size) for chart in return_charts(played, each)],
    )


def findings(played: Played[Size]) -> list[str]:
    """Return the returns of each problem in a sentence."""
    found = lines(played, problems(), f"{ID}-times")
    return [_said(problem, found) for problem in chosen(problems(), played.size)]


def _said(problem: Problem, found: Sequence[Line]) -> str:
    here = sorted((line for line in found if line.environment == problem.label), key=lambda line: -line.value)
    agents = ", ".join(f"{NAMES.get(line.agent, line.agent)} {line.value:.4g}" for line in here)
    untuned = "AutoPSVI untuned, the others tuned"
    return (
        f"{TITLE}: {problem.name}, mean return of the last fifth of {here[0].episodes} episodes: {agents} ({untuned})."
    )


def _line(results: Results, pick: Mapping[str, str]) -> Line:
    (problem,) = [each for each in problems() if each.label == pick["environment"]]
    return line_of(results, problem, pick["delay"], pick["agent"])


def _cell(experiment: str, results: Results, pick: Mapping[str, str]) -> Cell:
    found = _line(results, pick)
    return Cell(value=found.value, low=found.low, high=found.high)


ARTEFACT: Artefact[Size] = Artefact(
    id=ID,
    order=8,
    section=section,
    experiments=lambda size: [one for each in chosen(problems(), size) for one in each.experiments(size)],
    measurements=[timing(f"{ID}-times", problems)],
    findings=findings,
    lines=lambda played: [each._asdict() for each in lines(played, problems(), f"{ID}-times")],
    cell=_cell,
    line=lambda results, pick: _line(results, pick)._asdict(),
)
