"""What the site does to its pages besides Markdown: formulas, their font, links to source. A hook of MkDocs."""

from __future__ import annotations

import html
import re
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FONT = "STIXTwoMath-Regular.ttf"
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([,.;:)]*)', re.DOTALL)
SOURCE = re.compile(r"<summary>Source code in <code>(src/[\w/]+\.py)</code></summary>(.*?)</details>", re.DOTALL)
LINE = re.compile(r'<span class="normal">\s*(\d+)</span>')
LOADED = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the font of the formulas, which a package brings."""
    from mkdocs.structure.files import File

    package = find_spec("ziamath")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "fonts" / FONT
    files.append(File.generated(config, f"assets/{FONT}", abs_src_path=str(path)))
    return files


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Typeset formulas, and link the source of what the reference shows."""
    root = "../" * (page.url.count("/") + 1)  # of the repository, seen from site/, in which pages are built
    return SOURCE.sub(lambda found: linked(found, source_address() or root), FORMULA.sub(typeset, content))


def on_post_build(*, config: Any) -> None:
    """Refuse a site that would ask other machines for anything when it is opened."""
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        if found := LOADED.search(page.read_text(encoding="utf-8")):
            raise ValueError(f"{page} would load {found[0]}")


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


def linked(found: re.Match[str], address: str) -> str:
    """Return the source that was found, with a link to its first line in the repository."""
    line = LINE.search(found[2])
    link = f"{address}{found[1]}" + (f"#L{line[1]}" if line else "")
    return found[0].replace(f"<code>{found[1]}</code>", f'<a href="{link}"><code>{found[1]}</code></a>')
