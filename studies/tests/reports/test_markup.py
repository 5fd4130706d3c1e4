import pytest

from belated_studies.reports.markup import plain, spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("plain", [("text", "plain")]),
        ("**a**`b`c", [("bold", "a"), ("code", "b"), ("text", "c")]),
        ("`**not bold**`", [("code", "**not bold**")]),
        ("2 * 3 ** 4", [("text", "2 * 3 ** 4")]),
        ("one ` alone", [("text", "one ` alone")]),
    ],
)
def test_spans(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(spans(text)) == expected
    assert plain(text) == "".join(part for _, part in expected)
