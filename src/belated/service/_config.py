"""The models of a service, declared in a TOML file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from belated._util.validate import refuse
from belated.decisions import ModelSettings
from belated.errors import BelatedError, InvalidInputError


def check_model_name(name: str) -> str:
    """Return `name`; raise InvalidInputError unless it can be part of a URL and of a line of a log."""
    if not name.isprintable() or "/" in name or name in ("", ".", ".."):
        raise refuse("the name of a model", name, "printable and without a /, since it is part of URLs")
    return name


def load_models(path: str | Path) -> dict[str, ModelSettings]:
    """Read the settings of all models from a file with a table `[models.NAME]` for each.

    The file is validated as a whole: if any part is invalid, no model is returned.
    """
    try:
        content: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise refuse("config", str(path), f"a file that can be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is not a TOML file: {error}") from None
    unknown = sorted(set(content) - {"models"})
    tables = content.get("models")
    if unknown or not isinstance(tables, dict) or not tables:
        raise InvalidInputError(f"{path} must have a table [models.NAME] for each model, and nothing else")
    found = {}
    for name, table in tables.items():
        try:
            found[check_model_name(name)] = ModelSettings.from_table(table)
        except BelatedError as error:
            raise InvalidInputError(f"models.{name} of {path}: {error}") from None
    return found
