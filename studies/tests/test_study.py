"""Sizes, and the registry from which the commands are made."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name

import pytest

import belated
from belated.runner._tuning import Search
from belated_studies import SEARCHES, STUDIES
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


@pytest.mark.parametrize("name", STUDIES)
def test_the_registry_finds_every_study(name: str) -> None:
    study = resolve_name(STUDIES[name].where)
    assert isinstance(study, Study)
    assert study.name == name
    artefacts = study.artefacts()
    assert artefacts
    orders = [artefact.order for artefact in artefacts]
    assert orders == sorted(set(orders)), "every artefact has a place of its own"
    assert [artefact.id for artefact in study.artefacts([artefacts[-1].id])] == [artefacts[-1].id]


@pytest.mark.parametrize("name", SEARCHES)
def test_the_registry_finds_every_search(name: str) -> None:
    search = resolve_name(SEARCHES[name])()
    assert isinstance(search, Search)
    assert search.name == name
