"""Text of any kind made harmless."""

from __future__ import annotations

import pytest

from belated._util.escaped import latex, markdown


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("50% & #1 _a_ ~ ^", r"50\% \& \#1 \_a\_ \textasciitilde{} \textasciicircum{}"),
        ("ε → ∞", r"$\varepsilon$ $\to$ $\infty$"),
        ("a\nb", "a b"),
    ],
)
def test_nothing_is_a_command_of_latex(text: str, harmless: str) -> None:
    assert latex(text) == harmless


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("a|b", r"a\|b"),
        ("**bold** _it_ `code`", r"\*\*bold\*\* \_it\_ \`code\`"),
        ("<script>&amp;", "&lt;script>&amp;amp;"),
        ("[x](y)", r"\[x\](y)"),
        ("a\nb\\", "a b\\\\"),
        ("psvi-0.1", "psvi-0.1"),
    ],
)
def test_nothing_is_markup_of_markdown(text: str, harmless: str) -> None:
    assert markdown(text) == harmless
