"""Errors become sentences with the code that HTTP has for them."""

from __future__ import annotations

import json

import pytest

from belated.decisions import ConflictError, ForgottenError, StoreError
from belated.errors import InvalidInputError, UnknownNameError
from belated.service._admission import RejectedError
from belated.service._app import code_of, rejection
from belated.service._writer import FullError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RejectedError(413, "too long"), 413),
        (ForgottenError("was purged"), 410),
        (UnknownNameError("no such model"), 404),
        (ConflictError("another decision has this key"), 409),
        (StoreError("the disk is full"), 503),
        (FullError("too many wait"), 503),
        (InvalidInputError("reward must be a number"), 422),
    ],
)
def test_an_error_of_ours_is_told_in_its_own_words(error: Exception, code: int) -> None:
    answer = rejection(error)
    assert code_of(error) == answer.code == code
    assert json.loads(answer.content) == {"error": str(error)}
    assert ("Retry-After" in answer.headers) == (code == 503)


def test_what_nobody_foresaw_tells_nothing_of_the_inside() -> None:
    answer = rejection(RuntimeError("password=secret"))
    assert answer.code == 500
    assert b"secret" not in answer.content
