"""The settings of a model: immutable, validated, read from and written to tables of TOML or JSON."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from belated._util.validate import choice, integer, real, refuse
from belated.decisions._encoding import DENSE, MOST_DENSE, PER_ACTION, Encoding, check_text
from belated.decisions._members import FEWEST, MOST_ROWS
from belated.decisions._operations import LARGEST
from belated.decisions._session_settings import SESSION_KEYS, SessionSettings
from belated.decisions._silence import (
    ByAge,
    Silence,
    check_silence,
    silence_from_table,
    silence_to_table,
)
from belated.errors import InvalidInputError
from belated.features import Features
from belated.types import SparseVector

MOST_ACTIONS, MOST_DRAWS, MOST_SIGNALS = 100_000, 10_000, 8
#: Maximum number of entries of [θ̂ S] over all blocks, d(d + 1) each: at 48 bytes per entry, a model takes 800 MB.
MOST_NUMBERS = 2**24
#: Maximum number of multiplications per decision: a few tenths of a second.
MOST_WORK = 2**29
#: Cost of drawing and comparing a score, in multiplications.
_DRAW = 64
#: Ways to aggregate the rewards of one decision; see `_ledger`.
AGGREGATES = ("first", "last", "sum", "mean", "max", "min")
#: Distributions of the rewards given the features; see `_posterior` and `_revenue`.
LIKELIHOODS = GAUSSIAN, REVENUE = ("gaussian", "revenue")
#: The features of an action without features.
_NOTHING: Mapping[str, Any] = {}
_ENCODING = tuple(each.name for each in fields(Encoding))
#: Settings that do not apply to sessions.
_SINGLE = ("forgetting", "draws", "scale", "noise", "ridge", "likelihood")


def work(actions: int, dimension: int, draws: int, *, own_weights: bool, ages: int = 1) -> int:
    """Return the approximate number of multiplications per decision; see `Posterior.distribution` and `.scores`."""
    scores, drawn = ages * actions * dimension * (dimension + 1), _DRAW * actions * draws
    if own_weights:
        return scores + drawn
    width = min(actions, max(64, dimension))
    return scores + drawn + width**2 * (ages * dimension + width) + actions * width * draws


def most_actions(dimension: int, draws: int, *, own_weights: bool, ages: int = 1) -> int:
    """Return the maximum number of actions per request."""
    places = range(1, MOST_ACTIONS + 1)
    return bisect_right(places, MOST_WORK, key=lambda k: work(k, dimension, draws, own_weights=own_weights, ages=ages))


def check_work(actions: int, dimension: int, draws: int, *, own_weights: bool, ages: int = 1) -> None:
    """Raise InvalidInputError if a decision among this many actions would take too long."""
    most = most_actions(dimension, draws, own_weights=own_weights, ages=ages)
    if actions > most:
        takes = work(actions, dimension, draws, own_weights=own_weights, ages=ages)
        raise InvalidInputError(
            f"the number of actions must be at most {most} with {dimension} features and {draws} draws, got {actions}: "
            f"a decision would take {takes:.1e} multiplications, and may take {MOST_WORK:.1e}"
        )


def check_sparse_work(features: int, draws: int) -> None:
    """Raise InvalidInputError if a decision among actions with this many features in total would take too long."""
    takes = features * (draws // 2 + _DRAW)
    if takes > MOST_WORK:
        raise InvalidInputError(
            f"the actions must have at most {MOST_WORK // (draws // 2 + _DRAW)} nonzero features in total "
            f"with {draws} draws, got {features}: a decision would take {takes:.1e} multiplications"
        )


def sparse_bytes(features: int, draws: int, rows: int = MOST_ROWS, nonzero: int = 30) -> int:
    """Return the bytes that a model of this many sparse features and rows takes: members, duals and rows."""
    members = 1 + (max(draws, FEWEST) + 1) // 2
    return features * (4 * members + 28) + rows * (4 * members + 8 * nonzero + 64)


def check_sparse_memory(features: int, draws: int) -> None:
    """Raise InvalidInputError if a model of this many sparse features might take too much memory."""
    takes, may = sparse_bytes(features, draws), 48 * MOST_NUMBERS
    if takes > may:
        raise InvalidInputError(
            f"a model of {features} features and {draws} draws might take {takes / 1e9:.1f} GB of memory, and may take "
            f"{may / 1e9:.1f}: use fewer hash buckets, fewer actions with their own weights, or fewer draws"
        )


def most_blocks(dimension: int, ages: int = 1) -> int:
    """Return the maximum number of actions with their own weights."""
    return MOST_NUMBERS // (ages * dimension * (dimension + 1))


def check_blocks(blocks: int, dimension: int, ages: int = 1) -> None:
    """Raise InvalidInputError if this many actions with their own weights would take too much memory."""
    most = most_blocks(dimension, ages)
    if blocks > most:
        takes, may = (48e-9 * each * ages * dimension * (dimension + 1) for each in (blocks, most))
        parts = f" and {ages} ages" if ages > 1 else ""
        raise InvalidInputError(
            f"the number of actions with their own weights must be at most {most} with {dimension} features{parts}, "
            f"got {blocks}: the model would take {takes:.1f} GB of memory, and may take {may:.1f}"
        )


@dataclass(frozen=True)
class Forgetting:
    """Halve the weight of a decision with each half-life, given either in seconds or in later decisions."""

    seconds: float | None = None
    decisions: float | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.decisions is None):
            raise refuse("forgetting", self, "a half-life, either in seconds or in decisions")
        for name in ("seconds", "decisions"):
            if getattr(self, name) is not None:
                limited = real(f"{name} of forgetting", getattr(self, name), at_least=1e-3, at_most=LARGEST)
                object.__setattr__(self, name, limited)

    def time(self, made: float, number: int) -> float:
        """Return the time of a decision in half-lives."""
        return made / self.seconds if self.seconds is not None else number / (self.decisions or 1.0)


def check_noise(value: Any) -> float | None:
    """Return the noise, or None if it is to be estimated."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str) or value is None:
        raise refuse("noise", value, '"auto" or a positive number')
    return real("noise", value, at_least=1 / LARGEST, at_most=LARGEST)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The settings of a model. `silence` has no default, since there is no safe one.

    >>> table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
    >>> settings = ModelSettings.from_table(table)
    >>> settings.names, settings.encoding.dimension
    (('a', 'b'), 2)
    """

    silence: Silence
    actions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Names, each with its features; if empty, every request lists its own actions."""
    retired: tuple[str, ...] = ()
    """Actions that are no longer offered."""
    encoding: Encoding = field(default_factory=Encoding)
    aggregate: str = "sum"
    """How several rewards of one decision are combined: first, last, sum, mean, max or min."""
    signals: tuple[str, ...] = ()
    """Names of signals that may precede a reward (see `Signal`); only with silence by age."""
    forgetting: Forgetting | None = None
    floor: float = 0.002
    """Fraction of decisions drawn uniformly: each of K actions has at least the probability floor/K."""
    draws: int = 32
    """Posterior draws per decision, whose winners give its probabilities; with 1, they are unknown."""
    scale: float = 1.0
    """Factor on the standard deviations of draws."""
    noise: float | str = "auto"
    """Standard deviation of the rewards; with "auto", estimated from the residuals."""
    ridge: float = 1.0
    """Prior precision of the weights; if the noise is estimated, relative to it and to the features' mean length."""
    likelihood: str = GAUSSIAN
    """Distribution of the rewards: "gaussian", or "revenue", which is mostly zero and otherwise skewed."""
    seed: int = 0
    sessions: SessionSettings | None = None
    """Settings of sessions; None for a model of single decisions."""

    def __post_init__(self) -> None:
        check_silence(self.silence)
        choice("aggregate", self.aggregate, AGGREGATES)
        if not isinstance(self.encoding, Encoding):
            raise refuse("encoding", self.encoding, "an Encoding")
        if self.forgetting is not None and not isinstance(self.forgetting, Forgetting):
            raise refuse("forgetting", self.forgetting, "a Forgetting, or None")
        self._check_signals()
        object.__setattr__(self, "floor", real("floor", self.floor, at_least=0.0, at_most=1.0))
        integer("draws", self.draws, at_least=1, at_most=MOST_DRAWS)
        object.__setattr__(self, "scale", real("scale", self.scale, at_least=0.0, at_most=LARGEST))
        object.__setattr__(self, "ridge", real("ridge", self.ridge, at_least=1 / LARGEST, at_most=LARGEST))
        check_noise(self.noise)
        self._check_likelihood()
        integer("seed", self.seed, at_least=0, at_most=2**63 - 1)
        self._check_actions()
        if self.sessions is not None:
            self._check_sessions()

    def _check_sessions(self) -> None:
        if not isinstance(self.sessions, SessionSettings):
            raise refuse("sessions", self.sessions, "SessionSettings, or None")
        if self.signals:
            raise refuse("signals", self.signals, "left out for sessions: only single decisions have signals")
        if not self.actions:
            raise refuse("actions", [], "given in the settings of a model of sessions (at least one)")
        if self.encoding.weights != PER_ACTION:
            raise refuse("weights", self.encoding.weights, '"per action" for sessions: their actions have no features')
        for each in fields(self):
            if each.name in _SINGLE and getattr(self, each.name) != each.default:
                raise refuse(each.name, getattr(self, each.name), "left out for sessions: set it on their agent")
        if self.basis is not None:
            made = self.basis.encode(np.zeros(len(self.encoding.features)))
            if not isinstance(made, SparseVector):
                raise refuse("basis", self.sessions.basis, "a map of the context's numbers, not of actions")

    def _check_likelihood(self) -> None:
        if choice("likelihood", self.likelihood, LIKELIHOODS) == GAUSSIAN:
            return
        if self.noise != "auto":
            raise refuse("noise", self.noise, '"auto" if likelihood is "revenue", which has no single noise')
        if self.ages > 1:
            raise refuse("likelihood", self.likelihood, '"gaussian" if silence is learned by age')

    def _check_signals(self) -> None:
        given: Any = self.signals
        if not isinstance(given, list | tuple) or len(given) > MOST_SIGNALS:
            raise refuse("signals", given, f"a list of at most {MOST_SIGNALS} names")
        object.__setattr__(self, "signals", tuple(check_text("each of signals", name) for name in given))
        if len(set(given)) < len(given):
            raise refuse("signals", given, "different names")
        if given and not (isinstance(self.silence, ByAge) and self.silence.ages > 1):
            raise refuse("signals", given, 'left out, unless silence is learned by age, such as {kind = "by_age"}')

    def _check_actions(self) -> None:
        given: Any = self.actions
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise refuse("actions", given, "a list of names, or a table of names with features")
        names = [check_text("each of actions", name) for name in given]
        if len(set(names)) < len(names) or len(names) > MOST_ACTIONS:
            raise refuse("actions", given, f"at most {MOST_ACTIONS} different names")
        features = dict.fromkeys(names, _NOTHING)
        if isinstance(given, Mapping):
            for name in names:
                if not isinstance(given[name], Mapping):
                    raise refuse(f"the features of action {name!r}", given[name], "a table of names and values")
            features = {name: dict(given[name]) for name in names}
        if names:
            blank = dict.fromkeys(self.encoding.features, 0.0)
            self.encoding.matrix(blank, features)  # rejects features that are not declared
        object.__setattr__(self, "actions", features)
        retired: Any = self.retired
        if not isinstance(retired, list | tuple):
            raise refuse("retired", retired, "a list of names")
        object.__setattr__(self, "retired", tuple(retired))
        for name in retired:
            if not isinstance(name, str) or name not in features:
                raise refuse("each of retired", name, "the name of one of actions")
        dimension, own_weights = self.encoding.dimension, self.encoding.weights == PER_ACTION
        self.check_dense(dimension)
        if self.is_sparse(dimension):
            check_sparse_memory(dimension * (max(1, len(names)) if own_weights else 1), self.draws)
            return
        if dimension > MOST_DENSE:
            raise refuse("the length of a feature vector", dimension, f"at most {MOST_DENSE} in sessions and by age")
        if own_weights:
            check_blocks(len(names), dimension + self.numbers, self.outputs)
        check_work(len(names), dimension, self.draws, own_weights=own_weights, ages=self.ages * self.factors)

    def check_dense(self, dimension: int) -> None:
        """Raise InvalidInputError if the likelihood does not support this many features."""
        if self.likelihood != GAUSSIAN and dimension > DENSE:
            raise refuse("likelihood", self.likelihood, f'"gaussian" with more than {DENSE} features ({dimension})')

    @property
    def factors(self) -> int:
        """Number of posteriors whose product is a score."""
        return 1 if self.likelihood == GAUSSIAN else 2

    def is_sparse(self, dimension: int) -> bool:
        """Whether this many features are treated as sparse; never in sessions or by age."""
        return dimension > DENSE and self.ages == 1 and self.sessions is None

    @property
    def ages(self) -> int:
        """Number of ages of a window: one, unless silence is by age."""
        return self.silence.ages if isinstance(self.silence, ByAge) else 1

    @property
    def numbers(self) -> int:
        """Number of components, besides the features, that predict later ages: the reward so far, and signals."""
        return 0 if self.ages == 1 else 1 + len(self.signals)

    @property
    def outputs(self) -> int:
        """Number of regressions per block."""
        return (self.ages - 1) * self.numbers + self.factors

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.offer)

    @cached_property
    def offer(self) -> dict[str, Mapping[str, Any]]:
        """The actions on offer, with their features."""
        retired = set(self.retired)
        return {name: features for name, features in self.actions.items() if name not in retired}

    @cached_property
    def action_numbers(self) -> dict[str, int]:
        """The number of each action, in the order of declaration, including retired ones."""
        return {name: number for number, name in enumerate(self.actions)}

    @cached_property
    def basis(self) -> Features | None:
        """The feature map of a session's numbers, if it has one."""
        return None if self.sessions is None else self.sessions.features()

    @cached_property
    def offer_text(self) -> str:
        return json.dumps(list(self.offer), ensure_ascii=False)

    def with_action(self, name: str, features: Mapping[str, Any] | None = None) -> ModelSettings:
        """Return settings with another action, or with a retired one offered again."""
        check_text("name", name)
        if name in self.actions and name not in self.retired:
            raise refuse("name", name, "the name of an action that is not on offer yet")
        actions = {**self.actions, name: dict(features or self.actions.get(name, {}))}
        return replace(self, actions=actions, retired=tuple(each for each in self.retired if each != name))

    def without_action(self, name: str) -> ModelSettings:
        """Return settings that no longer offer an action."""
        choice("name", name, self.names)
        return replace(self, retired=(*self.retired, name))

    @property
    def horizon(self) -> int | None:
        """The maximum number of steps of a session; None for single decisions."""
        return None if self.sessions is None else self.sessions.horizon

    def continued(self, before: ModelSettings) -> ModelSettings:
        """Return these settings as successors of `before`: sessions number actions, so none may be lost or moved."""
        if self.sessions is None or before.sessions is None:
            return self
        names = dict.fromkeys([*before.actions, *self.actions])
        gone = [name for name in names if name not in self.actions]
        if not gone and list(names) == list(self.actions):
            return self
        return replace(self, actions=dict.fromkeys(names, _NOTHING), retired=(*self.retired, *gone))

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads, in values that JSON and TOML can represent."""
        table = {each.name: getattr(self, each.name) for each in fields(self)}
        sessions = table.pop("sessions")
        del table["encoding"]
        table |= {"silence": silence_to_table(self.silence), "retired": list(self.retired), "seed": int(self.seed)}
        table["signals"] = list(self.signals)
        if self.likelihood == GAUSSIAN:
            del table["likelihood"]
        table["actions"] = dict(self.actions) if any(self.actions.values()) else list(self.actions)
        if self.forgetting is None:
            del table["forgetting"]
        else:
            table["forgetting"] = {k: v for k, v in vars(self.forgetting).items() if v is not None}
        if sessions is not None:
            table = {name: value for name, value in table.items() if name not in _SINGLE} | sessions.to_table()
        encoding = self.encoding.to_dict()
        return {**table, "encoding": encoding.pop("version"), **encoding}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> ModelSettings:
        """Return the settings of a table, as in a TOML file; raise InvalidInputError unless all of it is valid."""
        if not isinstance(table, Mapping):
            raise refuse("the settings of a model", table, "a table")
        own = [each.name for each in fields(cls) if each.name != "sessions"]
        known = [*own, *_ENCODING, *SESSION_KEYS]
        for name in table:
            choice("the settings of a model", name, known)
        if "silence" not in table:
            raise refuse("silence", None, 'given, such as {kind = "unknown"}: there is no safe default')
        rest = {name: value for name, value in table.items() if name in own and name != "encoding"}
        rest["silence"] = silence_from_table(table["silence"])
        if "forgetting" in table:
            halves = table["forgetting"]
            if not isinstance(halves, Mapping) or not set(halves) <= {"seconds", "decisions"}:
                raise refuse("forgetting", halves, "a table such as {seconds = 86400} or {decisions = 1000}")
            rest["forgetting"] = Forgetting(**halves)
        sessions = {name: table[name] for name in SESSION_KEYS if name in table}
        if sessions:
            if "horizon" not in sessions:
                raise refuse("horizon", None, f"given, since {next(iter(sessions))} is for models of sessions")
            rest["sessions"] = SessionSettings(**sessions)
        encoding = {name: table[name] for name in _ENCODING if name in table}
        described = any(name.startswith("action_") for name in encoding)
        encoding.setdefault("weights", "shared" if described else "per action")
        return cls(**rest, encoding=Encoding.from_dict({"version": table.get("encoding", 1), **encoding}))

    def to_json(self) -> str:
        """Return the table as canonical JSON."""
        return json.dumps(self.to_table(), sort_keys=True, ensure_ascii=False, allow_nan=False)
