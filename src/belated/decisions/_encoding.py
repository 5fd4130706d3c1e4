"""From JSON to features: a declared, versioned encoding of contexts and actions.

The terms of a context are a constant, its numbers, and one term for each category and each tag; an action has its own
terms. With `weights="per action"` every action has a block of weights for the context's terms. With `weights="shared"`
there is one block for the products of the context's and the action's terms. Numbers have fixed indices, in the order of
their declaration; the values of categories and tags are not known in advance, so their terms are hashed by BLAKE2 into
`hashed` buckets, with a sign, identically on every machine. The hash of a product combines both hashes.

Feature vectors of up to `DENSE` entries are dense arrays; longer ones are sparse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from belated._kernels.jit import entry_point
from belated._kernels.sparse_ridge import Places, mixed
from belated._util.hashing import term_hash
from belated._util.validate import choice, integer, real, refuse
from belated.decisions._operations import LARGEST
from belated.errors import InvalidInputError
from belated.types import Floats, Ints

#: Version of the encoding, stored with the settings. It changes if the same JSON would give different features.
VERSION = 1

PER_ACTION, SHARED = "per action", "shared"
#: Maximum length of a feature vector; maximum length for dense vectors and exact draws, whose time grows with d²; and
#: maximum length where only dense vectors can be learned, in sessions and by age.
MOST_PLACES, DENSE, MOST_DENSE = 2**20, 256, 1024
#: Maximum length of a name, category or tag, and maximum number of tags in a list.
LONGEST, MOST_TAGS = 256, 1024

#: A term: its name, which is hashed, or its fixed index; and its value.
_Term = tuple[str, float]
#: The values of terms, numbers first; the hashes of their names; and how many of them are numbers.
_Described = tuple[list[float], list[int], int]
#: Maximum number of products of terms per request, which take a few tenths of a second.
MOST_PRODUCTS = 2**22
#: Number of actions whose terms are cached.
_KNOWN = 10_000
#: The hash of the constant, which leaves the hash of the other term unchanged in a product.
_ONE = 0


class SparseRows(NamedTuple):
    """The nonzero features of actions: those of action a are `begins[a]:ends[a]`, each index once."""

    begins: Ints
    ends: Ints
    places: Places
    values: Floats


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """The declared names of contexts and actions, and their positions in a feature vector.

    >>> Encoding(features=("x", "y")).matrix({"x": 0.5, "y": 2}, {"a": {}, "b": {}}).tolist()
    [[1.0, 0.5, 2.0]]
    """

    features: tuple[str, ...] = ()
    """Names of the context's numbers."""
    categories: tuple[str, ...] = ()
    """Names of the context's categories: strings, or null."""
    tags: tuple[str, ...] = ()
    """Names of the context's lists of strings."""
    action_features: tuple[str, ...] = ()
    """Names of an action's numbers."""
    action_categories: tuple[str, ...] = ()
    action_tags: tuple[str, ...] = ()
    weights: str = PER_ACTION
    """`"per action"`, or `"shared"`."""
    hashed: int = 0
    """Number of hash buckets for the terms of categories and tags, and for their products."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name not in ("weights", "hashed"):
                object.__setattr__(self, field.name, check_names(field.name, getattr(self, field.name)))
        choice("weights", self.weights, (PER_ACTION, SHARED))
        integer("hashed", self.hashed, at_least=0, at_most=MOST_PLACES)
        for kinds in (("features", "categories", "tags"), ("action_features", "action_categories", "action_tags")):
            check_names(" and ".join(kinds), [name for kind in kinds for name in getattr(self, kind)])
        if self.action_features or self.action_categories or self.action_tags:
            if self.weights == PER_ACTION:
                raise refuse("weights", self.weights, '"shared", since the actions have features')
        elif self.weights == SHARED:
            raise refuse("weights", self.weights, '"per action", since the actions have no features')
        lists = self.categories + self.tags + self.action_categories + self.action_tags
        if bool(lists) != bool(self.hashed):
            wanted = f"positive, for the values of {', '.join(lists)}" if lists else "0, since there is nothing to hash"
            raise refuse("hashed", self.hashed, wanted)
        if self.dimension > MOST_PLACES:
            raise refuse("the length of a feature vector", self.dimension, f"at most {MOST_PLACES}")

    @property
    def dimension(self) -> int:
        numbers = 1 + len(self.features)
        if self.weights == SHARED:
            numbers *= 1 + len(self.action_features)
        return numbers + self.hashed

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each entry of a feature vector.

        >>> Encoding(features=("x",), action_features=("u",), weights="shared").names
        ('1', 'u', 'x', 'x × u')
        """
        names = ["1", *self.features]
        if self.weights == SHARED:
            pairs = [(one, two) for one in names for two in ("1", *self.action_features)]
            names = [" × ".join(each for each in pair if each != "1") or "1" for pair in pairs]
        return (*names, *(f"hashed {place}" for place in range(self.hashed)))

    def declared(self, given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
        """Return the declared names among those of a context or, with the prefix "action_", of an action."""
        names = [each for kind in ("features", "categories", "tags") for each in getattr(self, prefix + kind)]
        return {name: value for name, value in given.items() if name in names}

    def matrix(self, context: Any, actions: Mapping[str, Mapping[str, Any]]) -> Floats:
        """Return the feature vector of each action in this context, one per row; undeclared names are rejected.

        With weights per action all actions have the same features, and there is a single row.
        """
        if not self.hashed and self.weights == PER_ACTION:
            self._check_bare(actions)
            numbers, _ = read_terms("context", context, self.features, (), ())
            return np.array(numbers)[None]
        rows = self.rows(context, actions)
        dense = np.zeros((len(rows.begins), self.dimension))
        for row, begin, end in zip(dense, rows.begins.tolist(), rows.ends.tolist(), strict=True):
            row[rows.places[begin:end]] = rows.values[begin:end]
        return dense

    def rows(self, context: Any, actions: Mapping[str, Mapping[str, Any]]) -> SparseRows:
        """Return what `matrix` does, in sparse form."""
        numbers, terms = read_terms("context", context, self.features, self.categories, self.tags)
        given = _described(self.features, numbers, terms)
        if self.weights == PER_ACTION:
            self._check_bare(actions)
            return _products(given, [([1.0], [_ONE], 1)], self.hashed)
        return _products(given, [self._describe(name, each) for name, each in actions.items()], self.hashed)

    def _describe(self, name: str, given: Mapping[str, Any]) -> _Described:
        """Return the terms of an action, cached."""
        try:
            key = (*given.items(), *map(type, given.values()))  # 1 and True are equal
            found = self._known.get(key)
        except (AttributeError, TypeError):  # has lists, or is not an object
            key, found = None, None
        if found is None:
            kinds = self.action_features, self.action_categories, self.action_tags
            found = _described(self.action_features, *read_terms(f"action {name!r}", given, *kinds))
            if key is not None:
                if len(self._known) >= _KNOWN:
                    self._known.clear()
                self._known[key] = found
        return found

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], _Described]:
        """Cache of the terms of actions."""
        return {}

    def _check_bare(self, actions: Mapping[str, Mapping[str, Any]]) -> None:
        if any(actions.values()):
            name, given = next(each for each in actions.items() if each[1])
            raise refuse(f"the features of action {name!r}", given, "none, since none are declared")

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as JSON values, with its version."""
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"version": VERSION, **{name: value for name, value in given.items() if value}}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Encoding:
        """Return what `to_dict` wrote; an unknown version is rejected."""
        given = dict(table)
        integer("the version of the encoding", given.pop("version", VERSION), at_least=1, at_most=VERSION)
        for name in given:
            choice("the settings of an encoding", name, [field.name for field in fields(cls)])
        values: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in given.items()}
        return cls(**values)


def check_names(name: str, value: Any) -> tuple[str, ...]:
    """Return names as a tuple; raise InvalidInputError unless they are distinct strings of valid length."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise refuse(name, value, "a list of names")
    names = tuple(check_text(f"each of {name}", each) for each in value)
    if len(set(names)) < len(names):
        raise refuse(name, value, "different names")
    return names


def check_text(name: str, value: Any) -> str:
    """Return `value`; raise InvalidInputError unless it is a string of valid length that is safe to display.

    Rejects line breaks and other control characters, bidirectional overrides, and surrogates, which UTF-8 cannot
    encode.

    >>> check_text("key", "two\\nlines")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    belated.errors.InvalidInputError: key must be a string of 1 to 256 characters, none of them a control ...
    """
    good = isinstance(value, str) and 0 < len(value) <= LONGEST and (value.isprintable() or not _UNSAFE.search(value))
    if not good:
        raise refuse(name, value, f"a string of 1 to {LONGEST} characters, none of them a control character")
    return str(value)


#: Control characters, bidirectional overrides, and surrogates.
_UNSAFE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def read_terms(
    label: str, given: Any, numbers: tuple[str, ...], categories: tuple[str, ...], tags: tuple[str, ...]
) -> tuple[list[float], list[_Term]]:
    """Return a constant 1 followed by the numbers, and the terms of the categories and tags."""
    if not isinstance(given, Mapping):
        raise refuse(label, given, "an object of names and values")
    values = [1.0]
    for name in numbers:
        value: Any = given.get(name)
        kind = value.__class__
        if (kind is float or kind is int) and -LARGEST <= value <= LARGEST:  # the usual case
            values.append(float(value))
        else:
            values.append(real(f"{name} of {label}", value, at_least=-LARGEST, at_most=LARGEST))
    present = [name for name in categories if given.get(name) is not None]
    terms = [(f"{name}={check_text(f'{name} of {label}', given[name])}", 1.0) for name in present]
    for name in tags:
        terms += _tags(f"{name} of {label}", name, given.get(name))
    if len(given) > len(numbers) or categories or tags:
        known = (*numbers, *categories, *tags)
        for name in given:
            if name not in known:
                allowed = f"those declared ({', '.join(known)})" if known else "none, since none are declared"
                raise InvalidInputError(f"the names in the {label} must be {allowed}, got {str(name)[:80]!r}")
    return values, terms


def _tags(label: str, name: str, given: Any) -> list[_Term]:
    if given is None:
        return []
    if not isinstance(given, list | tuple) or len(given) > MOST_TAGS:
        raise refuse(label, given, f"a list of at most {MOST_TAGS} strings")
    different = dict.fromkeys(check_text(f"each of {label}", tag) for tag in given)
    return [(f"{name}:{tag}", 1.0) for tag in different]


def _described(names: tuple[str, ...], numbers: list[float], terms: list[_Term]) -> _Described:
    values = [*numbers, *(value for _, value in terms)]
    hashes = [_ONE, *map(term_hash, names), *(term_hash(name) for name, _ in terms)]
    return values, hashes, len(numbers)


def _products(context: _Described, actions: list[_Described], hashed: int) -> SparseRows:
    """Return the products of a context's terms with those of each action, summed where indices coincide."""
    values, hashes, exact = context
    sizes = [len(each) for each, _, _ in actions]
    starts = np.zeros(len(actions) + 1, np.int64)
    starts[1:] = np.cumsum(sizes)
    room = len(values) * int(starts[-1])
    if room > MOST_PRODUCTS:
        raise refuse("the number of products of a context's and its actions' terms", room, f"at most {MOST_PRODUCTS}")
    rows = SparseRows(
        starts[:-1].copy(), starts[1:].copy(), np.empty(room, np.int32), np.empty(room)
    )  # fmt: skip
    multiply(
        np.array(values), np.array(hashes, np.uint64), exact,
        np.array([value for each, _, _ in actions for value in each]),
        np.array([value for _, each, _ in actions for value in each], np.uint64), actions[0][2], hashed, rows,
    )  # fmt: skip
    return rows


@entry_point
def multiply(
    values: Floats, hashes: npt.NDArray[np.uint64], exact: int, others: Floats, other_hashes: npt.NDArray[np.uint64],
    exact_others: int, hashed: int, rows: SparseRows,
) -> None:  # fmt: skip
    """Fill `rows` with products; its begins and ends delimit the actions' terms in `others` and are overwritten.

    A product of two numbers has a fixed index, any other the bucket and sign of its hash.
    """
    most = 0
    for action in range(rows.begins.size):
        most = max(most, rows.ends[action] - rows.begins[action])
    size = 2
    while size < 2 * most * values.size:
        size *= 2
    table, mask = np.zeros(size, np.int32), np.uint64(size - 1)  # from an index to its entry in `rows`, plus one
    used = 0
    for action in range(rows.begins.size):
        first, last, begin = rows.begins[action], rows.ends[action], used
        table[:] = 0
        for i in range(values.size):
            for j in range(first, last):
                value = values[i] * others[j]
                if value == 0.0:
                    continue
                if i < exact and j - first < exact_others:
                    place = i * exact_others + j - first
                else:
                    bits = hashes[i] if other_hashes[j] == np.uint64(0) else mixed(hashes[i] ^ mixed(other_hashes[j]))
                    place = exact * exact_others + np.int64((bits >> np.uint64(1)) % np.uint64(hashed))
                    if bits & np.uint64(1) == np.uint64(0):
                        value = -value
                at = mixed(np.uint64(place)) & mask
                while table[at] > 0 and rows.places[table[at] - 1] != place:
                    at = (at + np.uint64(1)) & mask
                if table[at] > 0:
                    rows.values[table[at] - 1] += value
                else:
                    rows.places[used], rows.values[used] = place, value
                    used += 1
                    table[at] = used
        rows.begins[action], rows.ends[action] = begin, used
