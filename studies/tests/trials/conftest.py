"""The scene of fifty shows, with few listeners."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belated_studies.trials import shows


@pytest.fixture
def few_listeners(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shows, "LISTENERS", 60)
    monkeypatch.setattr(shows, "PLAYED", 40)
    monkeypatch.setattr(shows, "OTHERS", 80)
    monkeypatch.setattr(shows, "SHOWS", 6)
    shows.listened.cache_clear()
    yield
    shows.listened.cache_clear()
