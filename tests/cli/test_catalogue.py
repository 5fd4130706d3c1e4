import io
from importlib.metadata import EntryPoint

import pytest
from rich.console import Console

import belated
from belated._cli.catalogue import KINDS, catalogue, settings
from belated._util import plugins as named


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_listed_with_its_settings(kind: str) -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue(kind))
    assert [name for name in KINDS[kind] if f" {name} " not in out.getvalue()] == []


def test_what_installed_packages_bring_is_listed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("weekly", "belated.delays:Constant", "belated.delays")
    monkeypatch.setattr(named, "entry_points", lambda group: [point] if group == point.group else [])
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue("delays"))
    assert out.getvalue().count("value") > 1
    assert " weekly " in out.getvalue()


def test_a_package_that_cannot_be_imported_hides_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("broken", "nowhere:Nobody", "belated.delays")
    monkeypatch.setattr(named, "entry_points", lambda group: [point] if group == point.group else [])
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue("delays"))
    assert "distribution 'broken' cannot be imported: No module named 'nowhere'" in out.getvalue()
    assert " poisson " in out.getvalue()


def test_settings_have_their_defaults() -> None:
    assert settings(belated.EpsilonGreedy) == ["epsilon=0.1", "ridge=1.0", "shared=False"]
    assert settings(belated.Poisson) == ["mean"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(belated.UnknownNameError, match="did you mean 'delays'"):
        catalogue("delay")
