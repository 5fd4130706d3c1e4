"""Write the reference pages of the documentation from the code: public names, names in files, and settings.

    python tools/reference.py

A test runs it and compares, so the pages are never kept by hand.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import belated
from belated._cli.tables import FIELDS, KINDS, NOTES
from belated._cli.tables import settings as settings_of
from belated.agents import AGENTS
from belated.decisions import ModelSettings
from belated.decisions._session_settings import SessionSettings
from belated.service._openapi import SETTINGS as MODEL_SETTINGS

PAGES = Path(__file__).parents[1] / "docs" / "reference"

#: Pages of the API: their title, what they are about, and the modules whose public names stand there. Those of a module
#: are what its `__all__` lists, else the classes, the functions and the values with a text that it defines. Every
#: module without an underscore in its path stands here, and no other.
API: dict[str, tuple[str, tuple[str, ...]]] = {
    "Running": ("Play agents, keep their rows, look at results, search for settings.", ("belated.runner",)),
    "Agents": (
        "Agents plan and learn. [One page](../settings.md) has the settings of each in a table.",
        ("belated.agents",),
    ),
    "Environments": (
        "Finite MDPs, bandits, simulators and trials.",
        ("belated.environments", "belated.environments.trials"),
    ),
    "Features": ("Maps from observations to features.", ("belated.features",)),
    "Gymnasium": ("Wrappers for late feedback; needs `belated[gym]`.", ("belated.gymnasium",)),
    "Delays": ("Delay distributions, and the queue of feedback that has not arrived.", ("belated.delays",)),
    "Compiled agents": ("The parts of a compiled agent of your own.", ("belated.compiled",)),
    "Testing": ("Contracts as checks: for agents, delays and environments, yours and ours.", ("belated.testing",)),
    "What they exchange": (
        "The values that agents and environments exchange.",
        ("belated.types",),
    ),
    "Evaluation": ("Estimates with intervals, from arrays with one row per seed.", ("belated.evaluation",)),
    "Theory": ("The theorems' constants and bounds.", ("belated.theory",)),
    "Decisions": (
        "Decide now, learn rewards later, and estimate what another policy would have earned.",
        ("belated.decisions",),
    ),
    "Service": (
        "Talk to the decision service (`belated[client]`), or serve it from your own program (`belated[service]`).",
        ("belated.client", "belated.service"),
    ),
    "Errors": ("The exceptions that belated raises on purpose.", ("belated.errors",)),
}

NAMES_HEAD = """# Public names

Made from the code by `tools/reference.py`. Names without a module can be imported from `belated`. Each name links to
its signature, types, docstring and source; in Python, `help(belated.run)` shows the same.
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
MODEL_HEAD = """# Settings of a model

Made from the code by `tools/reference.py`. A model of the decision service is a table of these keys: `[models.NAME]`
in the file of `belated serve --config`, the JSON of `PUT /v1/models/NAME`, or what
`ModelSettings.from_table` of `belated.decisions` takes. Only `silence` must be given. [How to run the
service](../howto/decision-service.md) says how to choose.

In the first model each action has its own weights. In the second, actions are described by features, so that the
weights are shared and a new action profits from what is known of the others:

```toml
[models.ads]
actions = ["a", "b", "c"]
features = ["x", "y"]
silence = {kind = "unknown"}

[models.offers]
features = ["hour"]
categories = ["country"]
action_features = ["price", "discount"]
hashed = 64                       # places for the countries and their products
silence = {kind = "mature", seconds = 86400, default = 0.0}
forgetting = {seconds = 2592000}  # half of it after thirty days

[models.offers.actions]
basic = {price = 5.0, discount = 0.0}
family = {price = 9.0, discount = 0.5}
```

A request to the second one has the context `{"hour": 17, "country": "DE"}`.
"""


def summary(thing: Any) -> str:
    """Return the first sentence of a docstring on one line, fit for a table."""
    return _first_paragraph(inspect.getdoc(thing) or "")


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def public_modules() -> set[str]:
    """Return every module of the library without an underscore in its path."""
    source = Path(belated.__file__).parent
    parts = [path.relative_to(source.parent).with_suffix("").parts for path in source.rglob("*.py")]
    packages = [each[:-1] if each[-1] == "__init__" else each for each in parts]
    return {".".join(each) for each in packages if not any(part.startswith("_") for part in each)} - {"belated"}


def public(path: str) -> list[str]:
    """Return the public names of a module."""
    module = importlib.import_module(path)
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    texts = value_texts(inspect.getsource(module))
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (name in texts or (getattr(thing, "__module__", "") == path and _is_documented(thing)))
    ]


def _is_documented(thing: Any) -> bool:
    """Whether something is a class or a function, compiled ones included, and no plain value."""
    return inspect.isclass(thing) or inspect.isroutine(thing) or inspect.isfunction(getattr(thing, "py_func", None))


def about(path: str, name: str) -> str:
    """Return what a name is: its first sentence, or that under its line if it is a plain value."""
    thing = getattr(importlib.import_module(path), name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return summary(thing)
    for module in [each for key, each in sys.modules.items() if key.startswith("belated.")]:
        if vars(module).get(name) is thing and (text := value_texts(inspect.getsource(module)).get(name)):
            return _first_paragraph(text)
    if _is_documented(thing):
        return summary(thing)
    raise LookupError(f"{path}.{name} has no text under its line")


def names() -> dict[str, dict[str, str]]:
    """Return what stands on each page of the API: every public name once, in its shortest form, and what it is."""
    pages: dict[str, dict[str, str]] = {}
    seen: set[int] = set()
    for title, (_, modules) in API.items():
        rows = pages.setdefault(title, {})
        for path in modules:
            module = importlib.import_module(path)
            for name in public(path):
                thing = getattr(module, name)
                short = getattr(belated, name, None) is thing and name in belated.__all__
                if id(thing) not in seen:
                    rows[f"belated.{name}" if short else f"{path}.{name}"] = about(path, name)
                seen.add(id(thing))
        pages[title] = dict(sorted(rows.items(), key=lambda row: row[0].count(".")))  # what `belated` has comes first
    return pages


def api_pages() -> dict[Path, str]:
    """Return the index of public names, and the pages that the site fills with signatures and docstrings."""
    parts, found = [NAMES_HEAD], {}
    for title, rows in names().items():
        file = f"api/{title.lower().replace(' ', '-')}.md"
        links = {name: f"[`{name.removeprefix('belated.') if name.count('.') == 1 else name}`]" for name in rows}
        table = [[f"{links[name]}({file}#{name})", text] for name, text in rows.items()]
        parts.append(_table(title, ("name", "what it is"), table, API[title][0].replace("(../", "(")))
        entries = "\n".join(f"::: {name}\n" for name in rows)
        found[PAGES / file] = f"# {title}\n\n{API[title][0]}\n\n{entries}"
    return {PAGES / "api.md": "\n".join(parts), **found}


def by_name_page() -> str:
    """Return the page of all environments, agents and delay distributions by the names that files use."""
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
        if dataclasses.is_dataclass(cls):
            found.update(value_texts(textwrap.dedent(inspect.getsource(cls))))
    return {name: " ".join(text.split()).replace("|", "\\|") for name, text in found.items()}


def value_texts(source: str) -> dict[str, str]:
    """Return the text under the line of each value of a module, or of each field if the source is that of a class."""
    body = ast.parse(source).body
    lines = body[0].body if len(body) == 1 and isinstance(body[0], ast.ClassDef) else body
    found: dict[str, str] = {}
    for line, after in pairwise(lines):
        plain = line.targets[0] if isinstance(line, ast.Assign) else None
        target = line.target if isinstance(line, ast.AnnAssign) else plain
        text = after.value if isinstance(after, ast.Expr) else None
        if isinstance(target, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
            found[target.id] = text.value
    return found


def settings_page() -> str:
    """Return the page of all settings."""
    parts = [SETTINGS_HEAD]
    for kind, settings in AGENTS.items():
        texts = field_texts(settings)
        rows = []
        for field in dataclasses.fields(settings):
            default = "required" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
            rows.append([f"`{field.name}`", f"`{field.type}`".replace("|", "\\|"), default, texts.get(field.name, "")])
        title = f"{settings.__name__} (`{kind}`)"
        about = summary(settings)
        parts.append(_table(title, ("setting", "type", "default", "what it is"), rows, about))
    return "\n".join(parts)


def model_page() -> str:
    """Return the page of a model's settings."""
    defaults = ModelSettings.from_table({"silence": {"kind": "unknown"}}).to_table()
    defaults |= SessionSettings(horizon=1).to_table()
    in_words = {
        "silence": "required",
        "weights": "by the actions",
        "forgetting": "none",
        "horizon": "none",
        "basis": "none",
    }
    rows = []
    for name, schema in MODEL_SETTINGS.items():
        empty: Any = [] if schema.get("type") == "array" else 0
        default = in_words.get(name, f"`{json.dumps(defaults.get(name, empty))}`")
        limits = "<br>or ".join(_limits(one) for one in schema.get("anyOf", [schema]))
        rows.append([f"`{name}`", limits, default, schema["description"].replace("|", "\\|")])
    return "\n".join([MODEL_HEAD, _table("Keys", ("key", "what it takes", "default", "what it is"), rows)])


def _limits(schema: dict[str, Any]) -> str:
    """Return what a schema lets through, in words."""
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema["type"]
    if kind in ("number", "integer"):
        least = (
            f"> {schema['exclusiveMinimum']:g}" if "exclusiveMinimum" in schema else f"≥ {_figure(schema['minimum'])}"
        )
        return f"{'an integer' if kind == 'integer' else 'a number'} {least} and ≤ {_figure(schema['maximum'])}"
    most = f" at most {schema['maxItems']}" if "maxItems" in schema else ""
    if kind == "string":
        return f"a name of {schema['minLength']} to {schema['maxLength']} characters"
    if kind == "array" and schema["items"]["type"] == "number":
        return f"a list of {most.removeprefix(' at most ')} numbers"
    if kind == "array":
        least, longest = schema["items"]["minLength"], schema["items"]["maxLength"]
        return f"a list of{most} different names of {least} to {longest} characters"
    if "maxProperties" not in schema and "properties" not in schema:
        return "a table"
    if "properties" not in schema:
        return f"a table of at most {schema['maxProperties']} names, each with a table of features"
    parts = [f"`{name}` ({_limits(each)})" for name, each in schema["properties"].items()]
    about = f": {schema['description']}" if "kind" in schema["properties"] else ""
    return f"a table of {', '.join(parts)}{about}"


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


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
        **api_pages(),
        PAGES / "by-name.md": by_name_page(),
        PAGES / "settings.md": settings_page(),
        PAGES / "model-settings.md": model_page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
