"""How sessions decide: states encoded from contexts, and sets of plans drawn from the log.

A **state** is the context of a step as features: a constant and its numbers, or their image under the model's `basis`,
and a term for each category and tag. One-hot indicators of a category sum to one, so with a category there is no
constant: a context with a single category is a state of a table, and agents treat it as one. Terms are identified by a
62-bit hash. The learner assigns them indices in the order of the log, up to `hashed` of them; once all are taken, a new
term shares the index given by its hash. Terms have no hashed signs, since a state is not a sum of its terms.

A **set of plans** is what a model acts on until it is planned again: J members drawn from one posterior, each a policy
for whole sessions. It is a pure function of a log prefix, the settings and the seed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point, kernel, kind_of
from belated._util.validate import integer, refuse
from belated.agents._plan_sets import PlanSet, Widths, distributions_of
from belated.decisions._encoding import read_terms
from belated.decisions._session_settings import SessionSettings
from belated.decisions._settings import ModelSettings
from belated.errors import BelatedError, DamagedFileError
from belated.types import Floats, Ints, SparseVector

#: Number of plans in a set; one if all would be equal, and fewer, but at least `FEWEST`, if a set would have more than
#: `MOST_NUMBERS` values, since it is stored and loaded by every process.
MEMBERS, FEWEST, MOST_NUMBERS = 16, 4, 2**22


class StepState(NamedTuple):
    """The encoded context of a step."""

    terms: Ints
    """Fixed indices, followed by the hashes of categories and tags."""
    values: Floats
    offered: Ints
    """Numbers of the actions on offer, in the order of the request."""


def sessions_of(settings: ModelSettings) -> SessionSettings:
    """Return the settings of sessions; raise InvalidInputError if the model has no sessions."""
    if settings.sessions is None:
        raise refuse("horizon", None, "given: the model has no sessions")
    return settings.sessions


def exact_places(settings: ModelSettings) -> int:
    """Return the number of features with fixed indices: those computed from the numbers of a context."""
    if settings.basis is not None:
        return settings.basis.size
    return len(settings.encoding.features) + (0 if settings.encoding.categories else 1)


@lru_cache(maxsize=100_000)
def _term(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"belated-1").digest(), "little") >> 2


def encode_state(settings: ModelSettings, context: Any, offered: Iterable[str]) -> StepState:
    """Return the state of a step; raise InvalidInputError unless context and actions match the settings.

    >>> table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}, "horizon": 3}
    >>> state = encode_state(ModelSettings.from_table(table), {"x": 0.5}, ["b"])
    >>> state.terms.tolist(), state.values.tolist(), state.offered.tolist()
    ([0, 1], [1.0, 0.5], [1])
    """
    encoding = settings.encoding
    numbers, terms = read_terms("context", context, encoding.features, encoding.categories, encoding.tags)
    named = [name for name, _ in terms]
    if encoding.categories:
        named += [f"{name}=" for name in encoding.categories if context.get(name) is None]  # null has an indicator, too
    basis = settings.basis
    if basis is not None:
        made = basis.encode(np.array(numbers[1:]))
        assert isinstance(made, SparseVector)
        places, values, exact = made.indices, made.values, basis.size
    else:
        values = np.array(numbers[1:] if encoding.categories else numbers)
        places, exact = np.arange(values.size), values.size
    if named:
        hashes = [exact + _term(name) for name in named]
        places = np.concatenate([places, np.array(hashes, np.int64)])
        values = np.concatenate([values, np.ones(len(named))])
    return StepState(places, values, numbers_of(settings, offered))


def numbers_of(settings: ModelSettings, names: Iterable[str]) -> Ints:
    """Return the numbers of actions, in the order of their declaration in the settings."""
    known = settings.action_numbers
    try:
        return np.array([known[name] for name in names], np.int64)
    except KeyError as error:
        raise refuse("each of the actions", error.args[0], f"one of {', '.join(known)}") from None


class Places(NamedTuple):
    """The indices of the terms of states in a feature vector."""

    exact: int
    """Indices below this are those of numbers."""
    hashed: int
    """Number of indices for terms."""
    terms: Ints
    """The terms that have their own index, ascending."""
    places: Ints
    """Their indices."""

    @property
    def size(self) -> int:
        return self.exact + self.hashed


@kernel
def fill_places(known: Places, terms: Ints, found: Ints) -> None:
    """Set the index of each term; -1 for a term that has none yet."""
    full = known.terms.size >= known.hashed
    for i in range(terms.size):
        term = terms[i]
        if term < known.exact:
            found[i] = term
            continue
        at = np.searchsorted(known.terms, term)
        if at < known.terms.size and known.terms[at] == term:
            found[i] = known.places[at]
        else:
            found[i] = known.exact + (term - known.exact) % known.hashed if full and known.hashed > 0 else -1


@entry_point
def ask(plans: PlanSet, known: Places, columns: Ints, step: int, state: StepState, distributions: Floats) -> None:
    """Set π_j(a | s), shape (J, K); `columns` maps feature indices to columns of the weights, -1 for none."""
    places = np.empty(state.terms.size, np.int64)
    values = np.empty(state.terms.size)
    fill_places(known, state.terms, places)
    count = 0
    for i in range(places.size):
        if places[i] >= 0 and columns[places[i]] >= 0:
            places[count], values[count] = columns[places[i]], state.values[i]
            count += 1
    distributions_of(plans, step, places[:count], values[:count], state.offered, distributions)


class Plans:
    """J policies for whole sessions, drawn from the first `place` rows of a log."""

    def __init__(self, place: int, plans: PlanSet, known: Places) -> None:
        self.place, self._plans, self._known = place, plans, known
        self._columns = np.full(known.size, -1)
        self._columns[plans.features] = np.arange(plans.features.size)
        self._compiled: dict[Hashable, Callable[..., None]] = {}

    @property
    def members(self) -> int:
        return len(self._plans.weights)

    def distributions(self, step: int, state: StepState) -> Floats:
        """Return π_j(a | s) of each member and action on offer, shape (J, K)."""
        found = np.empty((len(self._plans.weights), state.offered.size))
        kind = kind_of(state)
        made = self._compiled.get(kind)
        if made is None:  # cache the dispatch of the compiled function, which is the same for all steps
            given = (self._plans, self._known, self._columns, step, state, found)
            made = self._compiled[kind] = ask.compiled_for(*given)  # type: ignore[attr-defined]
        made(self._plans, self._known, self._columns, step, state, found)
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the plans as named arrays."""
        plans, widths = self._plans, self._plans.widths
        return {
            "place": np.array([self.place]),
            "weights": plans.weights,
            "features": plans.features,
            **{f"widths.{name}": values for name, values in widths._asdict().items()},
            "caps": plans.caps,
            "numbers": np.array([plans.ridge, plans.epsilon, plans.tie, float(plans.first)]),
            "terms": self._known.terms,
            "places": self._known.places,
        }

    def to_bytes(self) -> bytes:
        """Return the plans as a NumPy archive of numeric arrays."""
        archive = io.BytesIO()
        np.savez(archive, **self.arrays())  # type: ignore[arg-type]
        return archive.getvalue()


def plans_from_bytes(settings: ModelSettings, content: bytes) -> Plans:
    """Return what `to_bytes` wrote; raise DamagedFileError unless it is intact and matches the settings."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return _checked(settings, arrays)
    except (BelatedError, KeyError, TypeError, ValueError, OSError, EOFError) as error:
        raise DamagedFileError(f"a set of plans cannot be used: {error}") from None
    except Exception as error:  # zipfile raises various errors
        raise DamagedFileError(f"a set of plans cannot be read: {error}") from None


def _checked(settings: ModelSettings, arrays: Mapping[str, npt.NDArray[Any]]) -> Plans:
    sessions, encoding = sessions_of(settings), settings.encoding
    widths = Widths(*(arrays[f"widths.{name}"] for name in Widths._fields))
    weights, features, caps = arrays["weights"], arrays["features"], arrays["caps"]
    ridge, epsilon, tie, first = arrays["numbers"].tolist()
    plans = PlanSet(weights, features, widths, caps, ridge, epsilon, tie, bool(first))
    known = Places(exact_places(settings), encoding.hashed, arrays["terms"], arrays["places"])
    lengths = np.diff(widths.starts)
    steps, actions = weights.shape[1], weights.shape[3]
    blocks = 0 if not widths.starts.size else widths.starts.size - 1
    numbers = (features, known.terms, known.places, widths.starts, widths.active, widths.offsets)
    good = (
        weights.ndim == 5
        and weights.dtype == caps.dtype == widths.inverse.dtype == widths.beta.dtype == np.float64
        and all(each.dtype == np.int64 and each.ndim == 1 for each in numbers)
        and weights.shape[0] >= 1
        and weights.shape[2] >= 1
        and steps in (1, sessions.horizon)
        and weights.shape[4] == features.size
        and bool(np.isfinite(weights).all() and np.isfinite(widths.inverse).all())
        and not np.isnan(caps).any()
        and caps.shape == (sessions.horizon,)
        and _ascending(features, known.size)
        and _ascending(known.terms, None)
        and known.terms.size == known.places.size <= known.hashed
        and np.array_equal(np.sort(known.places), known.exact + np.arange(known.places.size))
        and blocks in (0, actions, sessions.horizon * actions)
        and widths.beta.size == (sessions.horizon if blocks else 0)
        and bool((lengths >= 0).all())
        and widths.active.size == int(lengths.sum())
        and bool((widths.active >= 0).all() and (widths.active < known.size).all())
        and widths.inverse.size == int((lengths**2).sum())
        and np.array_equal(widths.offsets, np.concatenate([[0], np.cumsum(lengths**2)])[: widths.starts.size])
        and (not blocks or widths.starts[0] == 0)
        and 0.0 <= epsilon <= 1.0
        and tie >= 0.0
        and ridge > 0.0
    )
    if not good:
        raise refuse("its arrays", sorted(arrays), "those of a set of plans for these settings")
    return Plans(integer("its place", int(arrays["place"][0]), at_least=0), plans, known)


def _ascending(numbers: npt.NDArray[Any], limit: int | None) -> bool:
    inside = not numbers.size or (numbers[0] >= 0 and (limit is None or numbers[-1] < limit))
    return bool(inside and (np.diff(numbers) > 0).all())
