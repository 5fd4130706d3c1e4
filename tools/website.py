"""A Python-Markdown extension for the site: formulas and links to source.

    python tools/website.py font     copy the font of the formulas from its package into docs/assets
    python tools/website.py check    fail if the site would load anything from other machines

MkDocs and Zensical load the extension by its name, `tools.website`, from the folder of the repository.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

ROOT = Path(__file__).parents[1]
FONT = "STIXTwoMath-Regular.ttf"
FROM_REFERENCE = "../../../"
"""The repository, seen from a page of the reference in site/reference/api, the only ones that show source."""
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([,.;:)]*)', re.DOTALL)
SOURCE = re.compile(r"<summary>Source code in <code>(src/[\w/]+\.py)</code></summary>(.*?)</details>", re.DOTALL)
LINE = re.compile(r'<span class="normal">\s*(\d+)</span>')
LOADED = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


class Website(Extension):  # type: ignore[misc, unused-ignore]  # not installed where types are checked
    """Typesets formulas, and links the source of what the reference shows."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Look at every page when it is HTML, after all others have."""
        md.postprocessors.register(Finished(md), "website", -100)


class Finished(Postprocessor):  # type: ignore[misc, unused-ignore]
    """Changes the HTML of a page."""

    def run(self, text: str) -> str:
        """Return the page with formulas as MathML and source with links."""
        return SOURCE.sub(linked, FORMULA.sub(typeset, text))


def makeExtension(**options: Any) -> Website:  # noqa: N802
    """Return the extension; Python-Markdown looks for this name."""
    return Website(**options)


def typeset(found: re.Match[str]) -> str:
    """Return a formula as MathML, which browsers draw without a script; a comma after it stays on its line."""
    kind, formula, after = found.groups()
    shown: str = _converter().convert_with_local_state(html.unescape(formula).strip(), displaystyle=kind == "div")
    return f'<span class="formula">{shown}{after}</span>' if after else shown


@cache
def _converter() -> Any:
    from math_core import LatexToMathML

    return LatexToMathML(fancy_error=False)


@cache
def source_address() -> str | None:
    """Return where files of the repository are shown, if the project says where it is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls: dict[str, str] = project.get("urls", {})
    address = urls.get("Source") or urls.get("Repository")
    return address and f"{address.rstrip('/')}/blob/main/"


def linked(found: re.Match[str]) -> str:
    """Return the source that was found, with a link to its first line in the repository."""
    line = LINE.search(found[2])
    link = f"{source_address() or FROM_REFERENCE}{found[1]}" + (f"#L{line[1]}" if line else "")
    return found[0].replace(f"<code>{found[1]}</code>", f'<a href="{link}"><code>{found[1]}</code></a>')


def copy_font(folder: Path) -> None:
    """Put the font of the formulas, which the package `ziamath` brings, into `folder`."""
    package = find_spec("ziamath")
    assert package is not None
    assert package.origin is not None
    shutil.copyfile(Path(package.origin).parent / "fonts" / FONT, folder / FONT)


def check(site: Path) -> None:
    """Refuse a site that would ask other machines for anything, or that has formulas which were not typeset."""
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        if found := LOADED.search(text):
            sys.exit(f"{page} would load {found[0]}")
        if "arithmatex" in text:
            sys.exit(f"{page} has a formula that was not typeset")


if __name__ == "__main__":
    copy_font(ROOT / "docs" / "assets") if sys.argv[1:] == ["font"] else check(ROOT / "site")
