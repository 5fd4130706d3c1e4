"""Delay distributions by name, and from the plain values of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belated._util.plugins import Kind
from belated._util.validate import refuse
from belated.delays._base import DelayDistribution, short_name
from belated.delays._distributions import (
    Constant,
    Geometric,
    Lossy,
    Mixture,
    Multinomial,
    NegativeBinomial,
    Pareto,
    Poisson,
    Uniform,
)
from belated.delays._outcome import DelayByAction, DelayByReward, OutcomeDelays
from belated.delays._recorded import Empirical, Fixed
from belated.delays._time_varying import Backlog, Bursts, Drift, Outages, Periodic

_CLASSES: tuple[type[DelayDistribution | OutcomeDelays], ...] = (
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
DELAYS = {short_name(each): each for each in _CLASSES}
"""The built-in delay distributions by name: `poisson`, `byaction`."""

KIND = Kind(
    field="distribution",
    group="belated.delays",
    ours=DELAYS,
    expected="a DelayDistribution or an OutcomeDelays",
    fits=lambda made: isinstance(made, DelayDistribution | OutcomeDelays),
    fits_class=lambda kind: issubclass(kind, DelayDistribution | OutcomeDelays),
)


def delay_from_text(text: str) -> DelayDistribution:
    """Parse a distribution from text: its name, and settings after a colon.

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
    delay = delay_from_dict(values)
    if isinstance(delay, OutcomeDelays):
        raise refuse("the delay", text, "a distribution that does not depend on the outcome of the episode")
    return delay


def delay_from_dict(values: Any) -> DelayDistribution | OutcomeDelays:
    """Return the distribution described by plain values, the inverse of `to_dict`.

    The field `distribution` is a built-in name, one registered by an installed package, or `module:Name`.

    >>> delay_from_dict({"distribution": "poisson", "mean": 50})
    Poisson(mean=50.0)
    """
    if not isinstance(values, Mapping) or "distribution" not in values:
        raise refuse("the delay", values, 'a table such as {"distribution": "poisson", "mean": 50}')
    settings = {key: _built(value) for key, value in values.items()}
    name = settings.pop("distribution")
    made: DelayDistribution | OutcomeDelays = KIND.make(name, KIND.own(name) or DELAYS[name], settings)
    return made


def _built(value: Any) -> Any:
    """Return `value` with the tables in it turned into distributions."""
    if isinstance(value, Mapping):
        return delay_from_dict(value)
    return [_built(entry) for entry in value] if isinstance(value, list) else value
