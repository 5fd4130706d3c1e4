"""Delay distributions by name, and from the plain values of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from belated._util.plugins import Kind
from belated._util.validate import refuse
from belated.delays._base import DelayDistribution
from belated.delays._composed import Empirical, Fixed, Lossy, Mixture
from belated.delays._distributions import (
    Constant,
    Geometric,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    Uniform,
)
from belated.delays._outcome import DelayByAction, DelayByReward, OutcomeDelays
from belated.delays._time_varying import Backlog, Bursts, Drift, Outages, Periodic
from belated.errors import InvalidInputError

DELAYS: dict[str, type[DelayDistribution | OutcomeDelays]] = {
    distribution.__name__.removeprefix("Delay").lower(): distribution
    for distribution in (
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
"""Every distribution by its lower-case name: `poisson`, `byaction`."""

KIND = Kind(
    field="distribution",
    group="belated.delays",
    ours=DELAYS,
    expected="a DelayDistribution or an OutcomeDelays",
    fits=lambda made: isinstance(made, DelayDistribution | OutcomeDelays),
    fits_class=lambda kind: issubclass(kind, DelayDistribution | OutcomeDelays),
)


def delay_from_text(text: str) -> DelayDistribution:
    """Return the distribution that one word describes: its name, then settings after a colon.

    >>> delay_from_text("pareto:shape=1,scale=500")
    Pareto(shape=1.0, scale=500.0, kind='classical')
    """
    name, _, settings = text.partition(":")
    values: dict[str, Any] = {"distribution": name}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            raise refuse("the delay", text, "a distribution and its settings, such as poisson:mean=50")
        try:
            number = float(value)
        except ValueError:
            raise refuse(f"the delay's {key}", value, "a number") from None
        values[key] = int(number) if number.is_integer() else number
    distribution = delay_from_dict(values)
    if isinstance(distribution, OutcomeDelays):
        raise refuse("the delay", text, "a distribution that does not depend on what happens")
    return distribution


def delay_from_dict(values: Any) -> DelayDistribution | OutcomeDelays:
    """Return the distribution that `DelayDistribution.to_dict` described.

    The field `distribution` is one of the library's names, one that an installed package brings, or `module:Name`.

    >>> delay_from_dict({"distribution": "poisson", "mean": 50})
    Poisson(mean=50.0)
    """
    if not isinstance(values, Mapping) or "distribution" not in values:
        raise refuse("distribution", values, 'a table such as {"distribution": "poisson", "mean": 50}')
    name = values["distribution"]
    found = KIND.own(name)
    if found is not None:
        made: DelayDistribution | OutcomeDelays = KIND.make(
            name, found, {key: _built(value) for key, value in values.items() if key != "distribution"}
        )
        return made
    distribution: Any = DELAYS[name]
    known = {field.metadata.get("key", field.name): field for field in fields(distribution)}
    for key in values:
        if key != "distribution" and key not in known:
            listed = ", ".join(repr(key) for key in known)
            raise InvalidInputError(f"the distribution {name!r} has no field {key!r}, only {listed}")
    for key, field in known.items():
        if key not in values and field.default is MISSING:
            raise refuse(key, dict(values), f"given for the distribution {name!r}")
    given = {known[key].name: _built(value) for key, value in values.items() if key != "distribution"}
    built: DelayDistribution | OutcomeDelays = distribution(**given)
    return built


def _built(value: Any) -> Any:
    """Return `value` with the tables in it turned into distributions."""
    if isinstance(value, Mapping):
        return delay_from_dict(value)
    return [_built(entry) for entry in value] if isinstance(value, list) else value
