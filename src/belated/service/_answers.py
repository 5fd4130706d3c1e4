"""Answers: values as JSON, errors as sentences with the code that HTTP has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from belated.decisions import ConflictError, ForgottenError, StoreError
from belated.errors import BelatedError, InvalidInputError, UnknownNameError
from belated.service._bodies import ErrorAnswer
from belated.service._writer import FullError

RETRY_AFTER = "1"
"""Seconds after which to try again what was refused for lack of room."""

encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """What is sent back."""

    content: bytes
    """JSON."""
    code: int = 200
    headers: Mapping[str, str] = {}


class RefusedError(Exception):
    """A request that is refused before anything looks at it."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def code_of(error: Exception) -> int:
    """Return what an error is in HTTP."""
    if isinstance(error, RefusedError):
        return error.code
    kinds: tuple[tuple[type[Exception], int], ...] = (
        (ForgottenError, 410),
        (UnknownNameError, 404),
        (ConflictError, 409),
        (StoreError, 503),
        (FullError, 503),
        (InvalidInputError, 422),
        (BelatedError, 422),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), 500)


def refusal(error: Exception) -> Answer:
    """Return an error as an answer: a sentence, and when to try again if that may help."""
    code = code_of(error)
    sentence = str(error) if code != 500 else "something went wrong inside; the log of the service says what"
    headers = {"Retry-After": RETRY_AFTER} if code == 503 else {}
    return Answer(encode(ErrorAnswer(sentence)), code, headers)
