"""Delay laws by name, and from the plain values of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from belated.delays.base import DelayLaw
from belated.delays.composed import Empirical, Fixed, Lossy, Mixture
from belated.delays.in_time import Backlog, Bursts, Drift, Outages, Periodic
from belated.delays.laws import (
    Constant,
    Geometric,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    Uniform,
)
from belated.delays.outcome import DelayByAction, DelayByReward, OutcomeLaw
from belated.errors import InvalidInputError
from belated.named import Kind
from belated.validate import refuse

LAWS: dict[str, type[DelayLaw | OutcomeLaw]] = {
    law.__name__.removeprefix("Delay").lower(): law
    for law in (
        Constant,
        Uniform,
        Multinomial,
        Poisson,
        Geometric,
        NegativeBinomial,
        Pareto,
        Empirical,
        Fixed,
        Mixture,
        Lossy,
        Periodic,
        Outages,
        Drift,
        Bursts,
        Backlog,
        DelayByAction,
        DelayByReward,
    )
}
"""Every law by its lower-case name: `poisson`, `byaction`."""

KIND = Kind(
    field="law",
    group="belated.delays",
    ours=LAWS,
    expected="a DelayLaw or an OutcomeLaw",
    fits=lambda made: isinstance(made, DelayLaw | OutcomeLaw),
    fits_class=lambda kind: issubclass(kind, DelayLaw | OutcomeLaw),
)


def law_from_text(text: str) -> DelayLaw:
    """Return the law that one word describes: its name, then settings after a colon.

    >>> law_from_text("pareto:shape=1,scale=500")
    Pareto(shape=1.0, scale=500.0, kind='classical')
    """
    name, _, settings = text.partition(":")
    values: dict[str, Any] = {"law": name}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            raise refuse("the delay", text, "a law and its settings, such as poisson:mean=50")
        try:
            number = float(value)
        except ValueError:
            raise refuse(f"the delay's {key}", value, "a number") from None
        values[key] = int(number) if number.is_integer() else number
    law = law_from_dict(values)
    if isinstance(law, OutcomeLaw):
        raise refuse("the delay", text, "a law that does not depend on what happens")
    return law


def law_from_dict(values: Any) -> DelayLaw | OutcomeLaw:
    """Return the law that `DelayLaw.to_dict` described.

    The field `law` is one of the library's names, one that an installed package brings, or `module:Name`.

    >>> law_from_dict({"law": "poisson", "mean": 50})
    Poisson(mean=50.0)
    """
    if not isinstance(values, Mapping) or "law" not in values:
        raise refuse("law", values, 'a table such as {"law": "poisson", "mean": 50}')
    name = values["law"]
    found = KIND.own(name)
    if found is not None:
        made: DelayLaw | OutcomeLaw = KIND.make(
            name, found, {key: _built(value) for key, value in values.items() if key != "law"}
        )
        return made
    law: Any = LAWS[name]
    known = {field.metadata.get("key", field.name): field for field in fields(law)}
    for key in values:
        if key != "law" and key not in known:
            listed = ", ".join(repr(key) for key in known)
            raise InvalidInputError(f"the law {name!r} has no field {key!r}, only {listed}")
    for key, field in known.items():
        if key not in values and field.default is MISSING:
            raise refuse(key, dict(values), f"given for the law {name!r}")
    given = {known[key].name: _built(value) for key, value in values.items() if key != "law"}
    built: DelayLaw | OutcomeLaw = law(**given)
    return built


def _built(value: Any) -> Any:
    """Return `value` with the tables in it turned into laws."""
    if isinstance(value, Mapping):
        return law_from_dict(value)
    return [_built(entry) for entry in value] if isinstance(value, list) else value
