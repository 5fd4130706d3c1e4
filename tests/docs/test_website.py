"""What the site does to its pages."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from scripts import ROOT, load

pytest.importorskip("markdown", reason="needs Markdown, which the extra `dev` brings")
pytest.importorskip("math_core", reason="needs math-core, which the extra `dev` brings")


@pytest.fixture(scope="module")
def website() -> ModuleType:
    found: ModuleType = load("tools/website.py")
    return found


def converted(website: ModuleType, page: str) -> str:
    """Return a page as the site has it, through Python-Markdown."""
    import markdown

    shown: str = markdown.Markdown(extensions=[website.makeExtension()]).convert(page)
    return shown


def test_formulas_become_mathml(website: ModuleType) -> None:
    page = r'<p>if <span class="arithmatex">\(a &lt; ν^2\)</span></p><div class="arithmatex">\[\hat w\]</div>'
    assert ",</span>" in converted(website, page.replace("</span>", "</span>,")), "a comma on a line of its own"
    shown = converted(website, page)
    assert "arithmatex" not in shown
    assert shown.startswith("<p>if <math><mi>a</mi><mo>&lt;</mo><msup><mi>ν</mi><mn>2</mn></msup></math></p>")
    assert 'display="block"' in shown


def test_formulas_of_a_page_are_found_as_the_site_marks_them(website: ModuleType) -> None:
    pytest.importorskip("pymdownx", reason="needs the extra `docs`")
    import markdown

    marks = {"pymdownx.arithmatex": {"generic": True}}
    page = markdown.Markdown(extensions=[*marks, website.makeExtension()], extension_configs=marks)
    shown = page.convert("where $a < b$, so\n\n$$\n\\hat w\n$$\n\nand `$x$`")
    assert shown.count("<math") == 2
    assert "<code>$x$</code>" in shown
    assert "arithmatex" not in shown


def test_source_links_to_its_line(website: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    code = '<pre><span class="normal">92</span>def run(</pre>'
    block = f"<details><summary>Source code in <code>src/belated/x.py</code></summary>{code}</details>"
    monkeypatch.setattr(website, "source_address", lambda: "https://example.org/belated/blob/main/")
    assert 'href="https://example.org/belated/blob/main/src/belated/x.py#L92"' in converted(website, block)
    monkeypatch.setattr(website, "source_address", lambda: None)
    assert 'href="../../../src/belated/x.py#L92"' in converted(website, block)


def test_the_site_needs_no_hook() -> None:
    """Zensical ignores hooks."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "hooks:" not in settings
    assert "- tools.website" in settings


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('<script src="https://example.org/x.js"></script>', "would load"),
        ("<img alt='' src=//example.org/x.png>", "would load"),
        ('<link rel="stylesheet" href="http://example.org/x.css">', "would load"),
        ('<span class="arithmatex">x</span>', "was not typeset"),
    ],
)
def test_a_site_that_loads_from_elsewhere_or_lacks_formulas_is_refused(
    website: ModuleType, tmp_path: Path, page: str, message: str
) -> None:
    file = tmp_path / "index.html"
    file.write_text('<a href="https://example.org">a link</a><script src="../assets/x.js"></script>', encoding="utf-8")
    website.check(tmp_path)
    file.write_text(f"<p>{page}</p>", encoding="utf-8")
    with pytest.raises(SystemExit, match=message):
        website.check(tmp_path)
