"""Write the reference pages of the documentation from the code: public names, names in files, and settings.

    python tools/reference.py

A test runs it and compares, so the pages are never kept by hand.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import textwrap
from pathlib import Path
from typing import Any

import belated
from belated.algorithms import ALGORITHMS
from belated.reports.catalogue import FIELDS, KINDS, NOTES
from belated.reports.catalogue import settings as settings_of

PAGES = Path(__file__).parents[1] / "docs" / "reference"

#: The sections of the page of names, and the packages whose public names stand there.
SECTIONS = {
    "Running": ("belated.runner",),
    "Algorithms": ("belated.algorithms", "belated.algorithms.baselines", "belated.checks"),
    "Environments": ("belated.environments",),
    "Features": ("belated.features",),
    "Gymnasium": ("belated.gymnasium",),
    "Delays": ("belated.delays", "belated.law_checks"),
    "What agents and environments exchange": ("belated.types", "belated.sampled"),
    "Evaluation": ("belated.evaluation",),
    "Theory": ("belated.theory",),
    "Decisions": ("belated.decisions",),
    "Posterior": ("belated.posterior",),
    "Errors": ("belated.errors",),
}

NAMES_HEAD = """# Public names

Made from the code by `tools/reference.py`. What is shown without a module is importable from `belated`; each has a
docstring with its parameters and an example: `help(belated.run)`.
"""
BY_NAME_HEAD = """# Everything by name

Made from the code by `tools/reference.py`: the names that an experiment file can use, with the class behind each and
its settings. `belated list` prints the same.
"""
SETTINGS_HEAD = """# Settings of the algorithms

Made from the code by `tools/reference.py`. All settings are keyword arguments, checked when the object is made. In a
TOML file they are the fields of the agent's table, beside `algorithm`. Symbols are those of the paper; [the
algorithms](../explanation/the-algorithms.md) explains what they do.
"""


def summary(thing: Any) -> str:
    """Return the first sentence of a docstring on one line, fit for a table."""
    text = inspect.getdoc(thing) or ""
    if not callable(thing) and not inspect.ismodule(thing):
        return f"a {type(thing).__name__}"
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def public(module: Any) -> list[str]:
    """Return the public names that are defined in `module` or below it."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [name for name in vars(module) if not name.startswith("_")]
    return [name for name in names if _home(getattr(module, name)).startswith(module.__name__)]


def _home(thing: Any) -> str:
    """Return the module in which a class or function was defined; of a plain value nobody knows."""
    defined = inspect.isclass(thing) or inspect.isroutine(thing)
    return str(getattr(thing, "__module__", "")) if defined else ""


def names_page() -> str:
    """Return the page of all public names."""
    top = {name: getattr(belated, name) for name in belated.__all__}
    shown: set[str] = set()
    parts = [NAMES_HEAD]
    for title, modules in SECTIONS.items():
        rows: dict[str, str] = {}
        for path in modules:
            for name, thing in top.items():
                if _home(thing).startswith(path) and name not in shown:
                    rows[name] = summary(thing)
                    shown.add(name)
            module = importlib.import_module(path)
            for name in public(module):
                if name not in shown:
                    rows[f"{path}.{name}"] = summary(getattr(module, name))
        parts.append(_table(title, ("name", "what it is"), [[f"`{name}`", text] for name, text in rows.items()]))
    rest = [[f"`{name}`", summary(top[name])] for name in belated.__all__ if name not in shown]
    parts.append(_table("Other", ("name", "what it is"), rest))
    return "\n".join(parts)


def by_name_page() -> str:
    """Return the page of all environments, algorithms and laws by the names that files use."""
    parts = [BY_NAME_HEAD]
    for kind, known in KINDS.items():
        rows = []
        for name, made in known.items():
            settings = ", ".join(f"`{each}`" for each in settings_of(made)).replace("|", "\\|")
            rows.append([f"`{name}`", f"`{made.__name__}`", summary(made), settings or "none"])
        columns = (FIELDS[kind], "class", "what it is", "settings")
        parts.append(_table(kind.capitalize(), columns, rows, NOTES.get(kind, "")))
    return "\n".join(parts)


def field_texts(settings: type) -> dict[str, str]:
    """Return the docstring of every field, its own or inherited: the text under its line in the class."""
    found: dict[str, str] = {}
    for cls in reversed(settings.__mro__[:-1]):
        if not dataclasses.is_dataclass(cls):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(body, ast.ClassDef)
        for line, after in zip(body.body, body.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                text = after.value if isinstance(after, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    found[line.target.id] = " ".join(text.value.split()).replace("|", "\\|")
    return found


def settings_page() -> str:
    """Return the page of all settings."""
    parts = [SETTINGS_HEAD]
    for kind, settings in ALGORITHMS.items():
        texts = field_texts(settings)
        rows = []
        for field in dataclasses.fields(settings):
            default = "required" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
            rows.append([f"`{field.name}`", f"`{field.type}`".replace("|", "\\|"), default, texts.get(field.name, "")])
        title = f"{settings.__name__} (`{kind}`)"
        about = summary(settings)
        parts.append(_table(title, ("setting", "type", "default", "what it is"), rows, about))
    return "\n".join(parts)


def _table(title: str, columns: tuple[str, ...], rows: list[list[str]], about: str = "") -> str:
    lines = [f"## {title}", ""]
    if about:
        lines += [about, ""]
    if rows:
        lines += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    else:
        lines.append("It has none.")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Return every generated page by its path."""
    return {
        PAGES / "api.md": names_page(),
        PAGES / "by-name.md": by_name_page(),
        PAGES / "settings.md": settings_page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
