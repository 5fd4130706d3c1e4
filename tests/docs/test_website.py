"""What the site does to its pages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
PAGE = SimpleNamespace(url="reference/api/running.html")


@pytest.fixture(scope="module")
def website() -> ModuleType:
    spec = importlib.util.spec_from_file_location("website", ROOT / "tools" / "website.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_formulas_become_mathml(website: ModuleType) -> None:
    pytest.importorskip("math_core", reason="needs math-core, which the extra `dev` brings")
    page = r'<p>if <span class="arithmatex">\(a &lt; ν^2\)</span></p><div class="arithmatex">\[\hat w\]</div>'
    assert ",</span>" in website.on_page_content(page.replace("</span>", "</span>,"), page=PAGE), (
        "a comma on a line of its own"
    )
    shown = website.on_page_content(page, page=PAGE)
    assert "arithmatex" not in shown
    assert shown.startswith("<p>if <math><mi>a</mi><mo>&lt;</mo><msup><mi>ν</mi><mn>2</mn></msup></math></p>")
    assert 'display="block"' in shown


def test_source_links_to_its_line(website: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    code = '<pre><span class="normal">92</span>def run(</pre>'
    block = f"<details><summary>Source code in <code>src/belated/x.py</code></summary>{code}</details>"
    monkeypatch.setattr(website, "source_address", lambda: "https://example.org/belated/blob/main/")
    shown = website.on_page_content(block, page=PAGE)
    assert 'href="https://example.org/belated/blob/main/src/belated/x.py#L92"' in shown
    monkeypatch.setattr(website, "source_address", lambda: None)
    assert 'href="../../../src/belated/x.py#L92"' in website.on_page_content(block, page=PAGE)


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://example.org/x.js"></script>',
        "<img alt='' src=//example.org/x.png>",
        '<link rel="stylesheet" href="http://example.org/x.css">',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_refused(website: ModuleType, tmp_path: Path, tag: str) -> None:
    config = SimpleNamespace(site_dir=tmp_path)
    page = tmp_path / "index.html"
    page.write_text('<a href="https://example.org">a link</a><script src="../assets/x.js"></script>', encoding="utf-8")
    website.on_post_build(config=config)
    page.write_text(f"<p>{tag}</p>", encoding="utf-8")
    with pytest.raises(ValueError, match="would load"):
        website.on_post_build(config=config)
