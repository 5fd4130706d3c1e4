"""Sizes, and the entry points that bring the commands and the searches."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name

import pytest
from declared import COMMANDS, SEARCHES

import belated
from belated.runner import Search
from belated_studies.study import Size, Study


@dataclass(frozen=True, kw_only=True)
class Played(Size):
    episodes: int


def test_a_size_takes_what_replaces_it() -> None:
    size = Played(name="quick", seeds=3, episodes=10)
    assert size.resized() == size
    assert size.resized(seeds=5) == Played(name="quick", seeds=5, episodes=10)
    assert size.resized(episodes=20) == Played(name="quick", seeds=3, episodes=20)
    assert size.folder == "quick"
    with pytest.raises(belated.InvalidInputError, match="no one number of episodes"):
        Size(name="quick", seeds=3).resized(episodes=20)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_that_of_a_study(name: str) -> None:
    assert callable(resolve_name(COMMANDS[name]))
    study = resolve_name(f"belated_studies.{name}:STUDY")
    assert isinstance(study, Study)
    assert study.name == name
    artefacts = study.artefacts()
    assert artefacts
    orders = [artefact.order for artefact in artefacts]
    assert orders == sorted(set(orders)), "every artefact has a place of its own"
    assert [artefact.id for artefact in study.artefacts([artefacts[-1].id])] == [artefacts[-1].id]


@pytest.mark.parametrize("name", SEARCHES)
def test_every_entry_point_of_a_search_makes_it(name: str) -> None:
    search = resolve_name(SEARCHES[name])()
    assert isinstance(search, Search)
    assert search.name == name
