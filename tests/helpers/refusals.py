"""Calls that must be refused, each with the words that the refusal must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def refusals(*calls: tuple[Callable[[], Any], str]) -> pytest.MarkDecorator:
    """Run a test of `call` and `message` once for each pair."""
    return pytest.mark.parametrize(("call", "message"), calls, ids=[message[:50] for _, message in calls])
