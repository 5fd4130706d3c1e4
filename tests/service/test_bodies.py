"""What requests and answers look like."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated.decisions import Decide, Reward
from belated.decisions._rows import DecisionRow
from belated.errors import InvalidInputError
from belated.service._bodies import (
    BODIES,
    MOST_ITEMS,
    CancelBody,
    DecideBody,
    FeedbackBody,
    decided,
    parse,
    parse_list,
)


def test_a_body_becomes_its_operation() -> None:
    body = b'{"context": {"x": 1}, "actions": ["a"], "key": "k", "active": false, "size": 1, "chosen": "a"}'
    assert parse(DecideBody, body).operation() == Decide(
        {"x": 1}, actions=["a"], key="k", active=False, size=1, chosen="a"
    )
    reward = b'{"id": "i", "reward": 2, "event": "e", "version": 3, "observed_at": 4.5, "slot": 1}'
    assert parse(FeedbackBody, reward).operation() == Reward("i", 2.0, event="e", version=3, observed=4.5, slot=1)
    assert parse(CancelBody, b'{"id": "i"}').operation().id == "i"


def test_a_plain_decision_is_answered_with_four_fields_and_a_ranking_with_five() -> None:
    plain = DecisionRow(1, "m", "i", 1, 0.0, None, None, 1, 7, "{}", "[]", ("a",), None, 0.5, None, b"", 1, None)
    ranked = replace(plain, ranking=("a", "b"))
    assert msgspec.to_builtins(decided(plain)) == {
        "id": "i", "action": "a", "probability": 0.5, "model_version": 7
    }  # fmt: skip
    assert msgspec.to_builtins(decided(ranked))["ranking"] == ("a", "b")


@pytest.mark.parametrize(
    "content", [b"", b"null", b"{}", b"[]", b"1", b'{"id": 1}', b"\xff", b"{" * 100_000, b'{"a":' * 100_000]
)
@pytest.mark.parametrize("kind", list(BODIES))
def test_no_body_that_cannot_be_read_gets_through(kind: type[Any], content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="the body must"):
        parse(kind, content)


@given(
    st.sampled_from(list(BODIES)),
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["id", "reward", "context", "event", "x"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_whatever_is_sent_is_read_or_refused_in_a_sentence(kind: type[Any], content: bytes) -> None:
    try:
        parse(kind, content).operation()
    except InvalidInputError as error:
        assert str(error)


def test_a_list_has_bounds_and_keeps_what_each_item_is() -> None:
    assert parse_list(b'[1, {"a": NaN}]'.replace(b"NaN", b"2")) == [b"1", b'{"a": 2}']
    for content in (b"[]", b"[" + b"1," * MOST_ITEMS + b"1]"):
        with pytest.raises(InvalidInputError, match=f"1 to {MOST_ITEMS} items"):
            parse_list(content)
