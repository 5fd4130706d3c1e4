"""Who may ask."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belated.service._admission import LOCAL, RejectedError, admit, check_page, name_of
from belated.service._keys import Key, Keyring, digest

HERE = "127.0.0.1:8080"


def asked(method: str = "POST", hosts: frozenset[str] | None = LOCAL, **headers: str) -> int:
    """Return the code with which a request is rejected, 200 if it is not."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    try:
        check_page(method, given, hosts)
    except RejectedError as error:
        return error.code
    return 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]", "[::1]:8080"])
def test_this_machine_knows_its_own_names(host: str) -> None:
    assert asked(host=host) == 200


@pytest.mark.parametrize(
    "host",
    ["rebound.example:8080", "127.0.0.1.nip.io", "localhost.example", "[::1].example", "0.0.0.0", "[::2]", "::2",
     "a@localhost", "localhost/", " ", "\xe9"],
)  # fmt: skip
def test_a_name_that_leads_here_but_is_not_ours_is_misdirected(host: str) -> None:
    assert asked(host=host) == 421
    assert asked(hosts=None, host=host) == 200


def test_two_names_are_one_too_many() -> None:
    with pytest.raises(RejectedError, match="got two"):
        check_page("GET", [(b"host", b"localhost"), (b"host", b"localhost")], None)


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://127.0.0.1:8080", 200),
        ("https://127.0.0.1:8080", 200),  # a proxy encrypts
        ("http://127.0.0.1:3000", 403),
        ("http://localhost:8080", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("127.0.0.1:8080", 403),
    ],
)
def test_only_pages_of_its_own_may_ask(origin: str, code: int) -> None:
    assert asked(host=HERE, origin=origin) == code
    assert asked("GET", host=HERE, origin=origin) == code


@pytest.mark.parametrize(
    ("site", "mode", "reading", "writing"),
    [
        ("same-origin", "cors", 200, 200),
        ("none", "navigate", 200, 200),
        ("cross-site", "no-cors", 403, 403),
        ("same-site", "cors", 403, 403),
        ("cross-site", "navigate", 200, 403),  # a link to the page; a form
        ("made-up", "cors", 403, 403),
    ],
)
def test_what_a_browser_says_of_the_page_counts(site: str, mode: str, reading: int, writing: int) -> None:
    assert asked("GET", host=HERE, sec_fetch_site=site, sec_fetch_mode=mode) == reading
    assert asked("POST", host=HERE, sec_fetch_site=site, sec_fetch_mode=mode) == writing


def test_a_name_is_compared_without_its_port() -> None:
    assert [name_of(host) for host in ("Shop.Example:80", "[2001:DB8::1]:80", "2001:db8::1")] == [
        "shop.example", "[2001:db8::1]", "[2001:db8::1]"
    ]  # fmt: skip


def test_a_key_opens_what_it_is_for() -> None:
    service: Any = SimpleNamespace(keys=Keyring([Key("shop", digest("s3cret"), frozenset({"decide"}))]))
    for headers in ([(b"x-api-key", b"s3cret")], [(b"authorization", b"bearer s3cret")]):
        admit(service, "decide", headers)
        with pytest.raises(RejectedError) as refused:
            admit(service, "feedback", headers)
        assert refused.value.code == 403
    needed, wrong = "a key is required", "the key is unknown"
    tried = [([], needed), ([(b"x-api-key", b"wrong")], wrong), ([(b"authorization", b"Basic s3cret")], needed)]
    for headers, sentence in tried:
        with pytest.raises(RejectedError, match=sentence) as refused:
            admit(service, "decide", headers)
        assert refused.value.code == 401
