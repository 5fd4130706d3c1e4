"""Objects by the name under which they can be imported."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import pytest
from refusals import refusals

from belated.errors import InvalidInputError
from belated.features import FromCallable
from belated.named import load, name_of


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
    (lambda: load("factory", "nowhere:make"), "factory 'nowhere:make' cannot be imported: No module named"),
    (lambda: load("factory", 3), "factory must be a name of the form 'package.module:name', got 3"),
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()
