"""The chain of a model's log: every row carries a digest of itself and of the digest before it.

So whoever reads the log detects rows that were altered, lost, moved or inserted, and the digest of the last row
identifies the whole log. This detects damage and mix-ups, not forgery.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from math import nan
from typing import Any, NamedTuple

SIZE = 16
_DECISION, _EVENT = struct.Struct("<qqqqqdddqq12i"), struct.Struct("<qqqqdddd4i")


class Head(NamedTuple):
    """The last position of a model's log, and the digest there."""

    seq: int
    chain: bytes


class Gap(NamedTuple):
    """A range of dropped rows, with the digests before the first and after the last."""

    first: int
    last: int
    before: bytes
    after: bytes


def origin(store: bytes, model: str) -> bytes:
    """Return the digest before the first row of a model, unique to the store."""
    return blake2b(store + model.encode(), digest_size=SIZE).digest()


def seal(*values: object) -> bytes:
    """Return the digest of a row that is not part of a log, such as settings."""
    plain = tuple(each + 0.0 if isinstance(each, float) else each for each in values)
    return blake2b(ascii(plain).encode(), digest_size=SIZE).digest()


def link_decision(before: bytes, values: Sequence[Any]) -> bytes:
    """Return the digest of a decision, from the columns of its table and the digest before it."""
    (seq, model, name, number, made, key, digest, settings, version, context, actions, ranking, probabilities,
     probability, suggestion, features, active, due, session, step, plan, votes, *_) = values  # fmt: skip
    parts = (
        model.encode(), name.encode(), b"" if key is None else key.encode(), digest or b"", context.encode(),
        actions.encode(), ranking.encode(), probabilities or b"", b"" if suggestion is None else suggestion.encode(),
        features, b"" if session is None else session.encode(), votes or b"",
    )  # fmt: skip
    numbers = _DECISION.pack(
        seq, number, settings, version, active, made + 0.0, nan if probability is None else probability + 0.0,
        nan if due is None else due + 0.0, -1 if step is None else step, -1 if plan is None else plan,
        len(parts[0]), len(parts[1]), -1 if key is None else len(parts[2]),
        -1 if digest is None else len(digest), len(parts[4]), len(parts[5]), len(parts[6]),
        -1 if probabilities is None else len(probabilities), -1 if suggestion is None else len(parts[8]), len(features),
        -1 if session is None else len(parts[10]), -1 if votes is None else len(votes),
    )  # fmt: skip
    return blake2b(before + numbers + b"".join(parts), digest_size=SIZE).digest()


def link_event(before: bytes, values: Sequence[Any]) -> bytes:
    """Return the digest of an event, from the columns of its table and the digest before it."""
    seq, model, name, kind, event, version, reward, slot, received, observed, counted, due, *_ = values
    parts = model.encode(), name.encode(), kind.encode(), event.encode()
    numbers = _EVENT.pack(  # adding 0.0 turns -0.0 into 0.0, as databases do
        seq, version, counted, -1 if slot is None else slot, nan if reward is None else reward + 0.0, received + 0.0,
        nan if observed is None else observed + 0.0, nan if due is None else due + 0.0, *map(len, parts),
    )  # fmt: skip
    return blake2b(before + numbers + b"".join(parts), digest_size=SIZE).digest()


def merge_gaps(gaps: Sequence[Gap]) -> list[Gap]:
    """Return gaps in order, with adjacent ones merged."""
    merged: list[Gap] = []
    for gap in sorted(gaps):
        if merged and merged[-1].after == gap.before:
            merged[-1] = merged[-1]._replace(last=gap.last, after=gap.after)
        else:
            merged.append(gap)
    return merged
