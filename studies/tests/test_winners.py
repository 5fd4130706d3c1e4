"""The committed winners are those of the searches, which are fair."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import pytest
from declared import SEARCHES

from belated._cli.demo import AGENTS
from belated_studies.exploration.problems import FULL as EXPLORATION
from belated_studies.paper.setting import FULL as PAPER
from belated_studies.systems.testbeds import FULL as SYSTEMS
from belated_studies.winners import tuned

SIMULATORS = ("mountain-car", "cart-pole", "acrobot", "mountain-car-greedy", "cart-pole-greedy", "acrobot-greedy")
TABLES = (
    "arms", "lotteries", "locks", "strict-locks", "dense", "dense-by-step", "nchain", "deepsea", "rivers", "lakes",
    "slippery-lakes", "dense-sure", "dense-by-step-sure",
    "cliff", "taxi", "grids", "blackjack",
)  # fmt: skip


def declared(name: str) -> Any:
    return resolve_name(SEARCHES[name])()


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_gives_each_agent_the_same_budget_on_other_seeds(name: str) -> None:
    search = declared(name)
    budgets = {"synthetic": 24, "riverswim": 24, "chain": 12, "adversarial": 12, **dict.fromkeys(TABLES, 12)}
    assert {len(space.candidates()) for space in search.spaces.values()} == {budgets.get(name, 6)}
    assert not set(search.tuning_seeds) & set(search.report_seeds)
    reported = {"synthetic": PAPER, "riverswim": PAPER, **dict.fromkeys((*SIMULATORS, *TABLES), EXPLORATION)}.get(
        name, SYSTEMS
    )
    assert set(range(reported.seeds)) <= set(search.report_seeds)


@pytest.mark.parametrize("name", SEARCHES)
def test_committed_winners_are_candidates_of_their_search(name: str) -> None:
    winners, search = tuned(name), declared(name)
    assert list(winners) == list(search.spaces)
    for label, settings in winners.items():
        assert settings in search.spaces[label].candidates()


def test_the_demo_plays_the_winners_and_what_needs_no_search() -> None:
    winners = tuned("synthetic").values()
    assert [type(agent).__name__ for agent in AGENTS if agent not in winners] == ["AutoPSVI", "RandomPolicy"]
