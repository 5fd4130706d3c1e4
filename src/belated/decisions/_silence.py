"""What a missing reward means: a choice that only the caller can make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from belated._util.validate import choice, integer, real, refuse
from belated.decisions._operations import LARGEST

#: Maximum number of ages.
MOST_AGES = 64


@dataclass(frozen=True)
class Unknown:
    """Silence means nothing: only rewards that arrived count. Right if rewards are missing at random.

    After `seconds`, if given, a decision without a reward expires: a first reward after that is late; it is stored but
    not learned.
    """

    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            object.__setattr__(self, "seconds", real("seconds", self.seconds, above=0.0, at_most=LARGEST))


@dataclass(frozen=True)
class DefaultAfter:
    """Silence means `reward` after `seconds`; a reward counts as soon as it arrives, and replaces the default.

    This is biased while windows are open: a positive counts at once and a negative only at the end, so that recent
    decisions are learned almost only from positives, the more so the longer the window and the faster the positives. It
    suits rewards whose delay does not depend on their value. Otherwise use `ByAge` or `Mature`.
    """

    seconds: float
    reward: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", real("seconds", self.seconds, above=0.0, at_most=LARGEST))
        object.__setattr__(self, "reward", real("reward", self.reward, at_least=-LARGEST, at_most=LARGEST))


@dataclass(frozen=True)
class Mature:
    """A decision counts only when it is `seconds` old, with the reward that has arrived by then or else with `default`.

    So a positive counts no earlier than a negative, and what is learned is a mean over decisions of the same age. Later
    rewards still correct it exactly. Choose a window within which nearly all rewards arrive: conversions after it are
    missing from recent decisions and present in old ones.
    """

    seconds: float
    default: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", real("seconds", self.seconds, above=0.0, at_most=LARGEST))
        object.__setattr__(self, "default", real("default", self.default, at_least=-LARGEST, at_most=LARGEST))


@dataclass(frozen=True)
class ByAge:
    """Learn from every decision as it ages: from the increment of its reward at each age, for the first `seconds`.

    The window is divided into ages that end at `seconds`·(b/`ages`)², b = 1, 2, …: fine where most rewards arrive,
    coarse where few are left. The increment of an age is learned once a decision has completed it, whether or not
    anything arrived; the mean reward is the sum over the ages. So a positive counts no earlier than a negative, as with
    `Mature`, but most of the reward is known long before the window is over. Rewards may be of any kind: sums, refunds,
    or conversions whose delay depends on the action. Anything after the window belongs to the last age.

    With `ages=1` it is `Mature`. A decision without any reward counts with `default`.

    >>> ByAge(3600.0, ages=4).ends
    (225.0, 900.0, 2025.0, 3600.0)
    """

    seconds: float
    default: float = 0.0
    ages: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", real("seconds", self.seconds, above=0.0, at_most=LARGEST))
        object.__setattr__(self, "default", real("default", self.default, at_least=-LARGEST, at_most=LARGEST))
        object.__setattr__(self, "ages", integer("ages", self.ages, at_least=1, at_most=MOST_AGES))

    def __hash__(self) -> int:  # hashes one number: called for every decision and age
        return hash(self.seconds)

    @cached_property
    def ends(self) -> tuple[float, ...]:
        """The end of each age, in seconds."""
        return tuple(self.seconds * (b * b) / (self.ages * self.ages) for b in range(1, self.ages + 1))

    @cached_property
    def left(self) -> tuple[float, ...]:
        """What is left of the window at the end of each age, in seconds."""
        return tuple(self.seconds - end for end in self.ends)

    def passed(self, due: float, over: float) -> int:
        """Return the number of completed ages at time `over`, of a decision whose window ends at `due`.

        Times are always compared in the same way, by what is left of the window: age b is completed if due ≤ over +
        left_b.
        """
        for passed, left in enumerate(self.left):
            if due > over + left:
                return passed
        return self.ages


Silence = Unknown | DefaultAfter | Mature | ByAge

KINDS: dict[str, type[Unknown] | type[DefaultAfter] | type[Mature] | type[ByAge]] = {
    "unknown": Unknown,
    "default_after": DefaultAfter,
    "mature": Mature,
    "by_age": ByAge,
}


def check_silence(value: Any) -> Silence:
    """Return `value`; raise InvalidInputError unless it is one of the kinds of silence."""
    if not isinstance(value, Unknown | DefaultAfter | Mature | ByAge):
        expected = "Unknown(), DefaultAfter(seconds, reward), Mature(seconds, default) or ByAge(seconds, default)"
        raise refuse("silence", value, expected)
    return value


def silence_from_table(table: Any) -> Silence:
    """Parse a table such as `{kind = "mature", seconds = 86400, default = 0.0}`.

    >>> silence_from_table({"kind": "mature", "seconds": 60})
    Mature(seconds=60.0, default=0.0)
    """
    if not isinstance(table, dict) or "kind" not in table:
        raise refuse("silence", table, 'a table with a kind, such as {kind = "unknown"}')
    kind = KINDS[choice("silence.kind", table["kind"], KINDS)]
    rest = {name: value for name, value in table.items() if name != "kind"}
    for name in rest:
        choice(f"the keys of silence of kind {table['kind']!r}", name, kind.__dataclass_fields__)
    if "seconds" in kind.__dataclass_fields__ and kind is not Unknown and "seconds" not in rest:
        raise refuse("silence", table, "a table with seconds")
    return kind(**rest)


def silence_to_table(silence: Silence) -> dict[str, Any]:
    kind = next(name for name, each in KINDS.items() if isinstance(silence, each))
    fields = {name: getattr(silence, name) for name in silence.__dataclass_fields__}
    return {"kind": kind, **{name: value for name, value in fields.items() if value is not None}}
