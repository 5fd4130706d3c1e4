"""The winners of a search: a sealed file of JSON that people can read and an experiment can include."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from belated._util.files import load_json
from belated.agents import agent_from_dict
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.types import Algorithm

KIND, VERSION = "belated-winners", 1


def read_winners(path: str | Path, *, accept_old: bool = False) -> dict[str, Any]:
    """Return what a file of winners says, as plain values; refuse a damaged or foreign file."""
    content = load_json(Path(path), KIND, VERSION, accept_old=accept_old)
    winners = content.get("winners")
    if not isinstance(winners, dict) or not winners:
        raise DamagedFileError(f"{path} is not a {KIND} file with winners")
    seeds = content.get("tuning_seeds", [])
    if not isinstance(seeds, list) or not all(isinstance(seed, int) for seed in seeds):
        raise DamagedFileError(f"{path} is not a {KIND} file with seeds")
    return content


def load_winners(path: str | Path, *, accept_old: bool = False) -> dict[str, Algorithm]:
    """Return the winners of a file that `Outcome.save` wrote; refuse a damaged or foreign file."""
    winners = read_winners(path, accept_old=accept_old)["winners"]
    try:
        return {label: agent_from_dict(settings) for label, settings in winners.items()}
    except (BelatedError, TypeError) as error:
        raise InvalidInputError(f"{path} does not hold usable settings: {error}") from error
