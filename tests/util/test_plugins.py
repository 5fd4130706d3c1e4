"""Classes and functions by name: the library's, those of packages, and a user's own."""

from __future__ import annotations

import collections
import math
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_classes import write_modules
from refusals import refusals

import belated
from belated._util import plugins as named
from belated._util.plugins import load, name_of, reading, returned, spelled
from belated.agents import agent_from_dict
from belated.agents._registry import KIND
from belated.delays import delay_from_dict
from belated.environments import any_environment_from_dict, environment_from_dict
from belated.errors import InvalidInputError, UnknownNameError
from belated.features import FromCallable, features_from_dict

OWN = "own_classes_of_named"


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder with modules of a user's own; what is imported from there is forgotten afterwards."""
    write_modules(tmp_path, OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(OWN)]:
        del sys.modules[name]


@pytest.mark.parametrize("thing", [math.hypot, collections.OrderedDict, collections.OrderedDict.fromkeys, FromCallable])
def test_a_name_leads_back_to_its_object(thing: Any) -> None:
    name = name_of(thing)
    assert name is None or load("object", name) is thing
    assert (name is None) == (thing == collections.OrderedDict.fromkeys)  # bound again whenever it is asked for


def test_what_cannot_be_imported_has_no_name() -> None:
    def inner() -> None: ...

    other = type("hypot", (), {"__module__": "math"})  # not what is found under its name
    for thing in (inner, lambda: 0, 3, other):
        assert name_of(thing) is None


@refusals(
    (lambda: FromCallable(function="math:hypotenuse"), "function 'math:hypotenuse' cannot be imported"),
    (lambda: FromCallable(function="hypot"), "function must be a name of the form 'package.module:name', got 'hypot'"),
    (lambda: load("factory", "nowhere:make"), "factory 'nowhere:make' cannot be imported: No module named 'nowhere', "),
    (lambda: load("factory", 3), "factory must be a name of the form 'package.module:name', got 3"),
    (lambda: load("factory", "mine.py:make"), "factory must be a name of the form 'package.module:name', got 'mine.py"),
    (lambda: load("factory", "../mine:make"), "factory must be a name of the form 'package.module:name'"),
    (lambda: load("factory", f"{OWN}_broken:X"), f"'{OWN}_broken:X' cannot be imported: RuntimeError: no such table"),
    (
        lambda: load("factory", f"{OWN}_missing:X"),
        "cannot be imported: No module named 'there_is_no_such_package', which it imports",
    ),
    (lambda: agent_from_dict({"algorithm": f"{OWN}:Coni"}), rf"{OWN}\.py has no 'Coni'; did you mean 'Coin'\?"),
    (
        lambda: agent_from_dict({"algorithm": f"{OWN}:CoinAgent"}),
        r"must be an algorithm, with a method start\(problem\): its class, or a function annotated with .*, got <class",
    ),
    (lambda: agent_from_dict({"algorithm": f"{OWN}:number"}), "must be an algorithm, .* got 3"),
    (lambda: agent_from_dict({"algorithm": f"{OWN}:river"}), "must be an algorithm, .* got <function river"),
    (
        lambda: agent_from_dict({"algorithm": f"{OWN}:liar"}),
        f"what {OWN}:liar returns must be an algorithm, .* 0.5",
    ),
    (
        lambda: agent_from_dict({"algorithm": f"{OWN}:Coin", "head": 1}),
        f"{OWN}:Coin has no setting 'head'; its settings are: heads, note; did you mean 'heads'",
    ),
    (lambda: agent_from_dict({"algorithm": f"{OWN}:Around"}), f"{OWN}:Around needs the setting 'base'"),
    (
        lambda: agent_from_dict({"algorithm": f"{OWN}:Coin", "heads": 2}),
        f"{OWN}:Coin rejects its settings: ValueError: heads is a probability",
    ),
    (
        lambda: delay_from_dict({"distribution": f"{OWN}:Coin"}),
        "must be a DelayDistribution or an OutcomeDelays: its class, or",
    ),
    (lambda: delay_from_dict({"distribution": f"{OWN}:Twice", "value": -1}), "value must be"),
    (lambda: features_from_dict({"features": f"{OWN}:Coin"}), r"must be a feature map, with size and encode"),
    (lambda: environment_from_dict({"environment": f"{OWN}:Coin"}), "must be a belated Environment"),
    (
        lambda: any_environment_from_dict({"environment": "gymnasium.envs.classic_control:CartPoleEnv"}),
        "a class of Gymnasium: environment = 'gymnasium', factory = its name",
    ),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


PAYLOADS = {
    "a function that does not say what it returns": f"{OWN}:unsaid",
    "a class with another start": f"{OWN}:Thread",
    "a command": "os:system",
}


@pytest.mark.parametrize("name", PAYLOADS.values(), ids=PAYLOADS.keys())
@pytest.mark.parametrize(
    "make",
    [
        lambda name: agent_from_dict({"algorithm": name}),
        lambda name: agent_from_dict({"algorithm": "rare-switching", "every": 2, "base": {"algorithm": name}}),
        lambda name: delay_from_dict({"distribution": name}),
        lambda name: delay_from_dict({"distribution": "lossy", "missing": 0.1, "of": {"distribution": name}}),
        lambda name: environment_from_dict({"environment": name}),
        lambda name: any_environment_from_dict({"environment": "gymnasium", "factory": name, "horizon": 3}),
        lambda name: features_from_dict({"features": name}),
        lambda name: features_from_dict({"features": "sklearn", "transformer": name}),
    ],
    ids=["agent", "base", "delay", "inner delay", "environment", "factory", "features", "transformer"],
)
def test_what_does_not_make_the_wanted_is_never_called(make: Callable[[str], Any], name: str) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        make(name)
    assert not Path("marker").exists()


def test_data_may_name_only_what_it_is_given() -> None:
    names = {"algorithm": f"{OWN}:Coin"}, {"distribution": f"{OWN}:Twice", "value": 1}, {"features": f"{OWN}:First"}
    makers: list[Callable[[Any], Any]] = [agent_from_dict, delay_from_dict, features_from_dict]
    with reading([]):
        for make, table in zip(makers, names, strict=True):
            with pytest.raises(InvalidInputError, match=rf"neither built-in nor .* pass classes=\['{OWN}:"):
                make(table)
        assert OWN not in sys.modules  # not even imported
        assert isinstance(agent_from_dict({"algorithm": "psvi"}), belated.DelayedPSVI)
    twice = load("class", f"{OWN}:Twice")
    with reading([f"{OWN}:Coin", twice]):
        coin: Any = agent_from_dict(names[0])
        assert coin.heads == 0.5
        assert isinstance(delay_from_dict(names[1]), twice)
        with pytest.raises(InvalidInputError, match="neither built-in"):
            features_from_dict(names[2])
    assert features_from_dict(names[2]).size == 2  # and afterwards everything is as before


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (3, "classes must be a list of classes and functions"),
        (f"{OWN}:Coin", "classes must be a list of classes and functions"),
        ([3], "one of classes must be a class or function, or its name, 'module:Name', got 3"),
        (["Coin"], "one of classes must be a name of the form"),
    ],
)
def test_classes_are_classes(classes: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message), reading(classes):
        pass


def test_a_function_says_what_it_returns() -> None:
    def one() -> belated.Poisson: ...  # type: ignore[empty-body]
    def either() -> belated.Poisson | belated.Constant: ...  # type: ignore[empty-body]
    def generic() -> list[int]: ...  # type: ignore[empty-body]
    def nothing(): ...  # type: ignore[no-untyped-def]
    def nowhere() -> NoSuchClass: ...  # type: ignore[name-defined]  # noqa: F821

    assert returned(one) == [belated.Poisson]
    assert returned(either) == [belated.Poisson, belated.Constant]
    assert returned(generic) == [list]
    assert returned(nothing) == returned(nowhere) == returned(len) == returned(3) == []


def test_all_four_kinds_are_found_in_the_working_folder() -> None:
    coin: Any = agent_from_dict({"algorithm": f"{OWN}:Coin", "heads": 0.25})
    around: Any = agent_from_dict({"algorithm": f"{OWN}:Around", "base": {"algorithm": "greedy"}, "times": 2})
    distribution = delay_from_dict({"distribution": f"{OWN}:Twice", "value": 3})
    nested = delay_from_dict(
        {"distribution": "lossy", "missing": 0.0, "of": {"distribution": f"{OWN}:Twice", "value": 3}}
    )
    features: Any = features_from_dict({"features": f"{OWN}:First", "numbers": 1})
    assert coin.heads == 0.25
    assert around.base == belated.Greedy()
    assert distribution.sample(np.random.default_rng(0), 2).tolist() == [6, 6]
    assert isinstance(nested, belated.Lossy)
    assert features.encode([5.0, 6.0]).values.tolist() == [5.0]
    assert environment_from_dict({"environment": f"{OWN}:Corridor", "rooms": 5}).states == 5
    assert environment_from_dict({"environment": f"{OWN}:river", "states": 4}).to_dict()["states"] == 4


def test_a_specification_of_ones_own_comes_back() -> None:
    distribution = delay_from_dict({"distribution": f"{OWN}:Twice", "value": 3})
    assert distribution.to_dict() == {"distribution": f"{OWN}:Twice", "value": 3}
    assert delay_from_dict(distribution.to_dict()) == distribution
    features: Any = features_from_dict({"features": f"{OWN}:First", "numbers": 1})
    assert features_from_dict(features.to_dict()) == features
    assert spelled(belated.Poisson, "poisson") == "poisson"


def test_a_module_of_the_working_folder_hides_none_of_the_others(working_folder: Path) -> None:
    (working_folder / "fractions.py").write_text("Fraction = None\n", encoding="utf-8")
    sys.modules.pop("fractions", None)
    assert load("class", "fractions:Fraction") is not None
    assert sys.path[-1] == str(working_folder)


def test_packages_bring_classes_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("coin", f"{OWN}:Coin", KIND.group),
        EntryPoint("psvi", f"{OWN}:Coin", KIND.group),
        EntryPoint("gone", f"{OWN}:Gone", KIND.group),
    ]
    monkeypatch.setattr(named, "entry_points", lambda group: [one for one in points if one.group == group])
    coin: Any = agent_from_dict({"algorithm": "coin", "heads": 1.0})
    assert coin.heads == 1.0
    assert isinstance(agent_from_dict({"algorithm": "psvi"}), belated.DelayedPSVI)  # the library's comes first
    assert KIND.names()[-2:] == ["coin", "gone"]
    with pytest.raises(InvalidInputError, match=r"algorithm 'gone' cannot be imported: .* has no 'Gone'"):
        agent_from_dict({"algorithm": "gone"})
    with pytest.raises(
        UnknownNameError, match=r"'fixed', 'coin', 'gone', or a class .*got 'coim'; did you mean 'coin'"
    ):
        agent_from_dict({"algorithm": "coim"})
    with pytest.raises(UnknownNameError, match=r"algorithm must be one of .* got \['psvi'\]"):
        agent_from_dict({"algorithm": ["psvi"]})
