"""Flipped bits and changed, lost or doubled bytes in a file of each kind: rejected as damaged, or without effect."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attacks.files import save_all
from attacks.tally import Tally
from belated.errors import DamagedFileError


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Damage the files in turn."""
    files = save_all(folder)
    whole = {kind: (kept.path.read_bytes(), kept.read()) for kind, kept in files.items()}
    for number in range(tries):
        if not tally.left():
            return
        kind = list(files)[number % len(files)]
        content, held = whole[kind]
        what, damaged = damage(content, rng)
        with tally.attempt(f"{kind}: {what}"):
            files[kind].path.write_bytes(damaged)
            try:
                found = files[kind].read()
            except DamagedFileError:
                found = held  # refused, as it should be
            assert found == held, "other values, without a word"
        files[kind].path.write_bytes(content)


def damage(content: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return a description of the damage, and the damaged content: mostly a single flipped bit."""
    at, bit, length = int(rng.integers(len(content))), int(rng.integers(8)), int(rng.integers(1, 64))
    changed = bytearray(content)
    how = rng.choice(["bit", "byte", "zeros", "cut", "lost", "doubled", "noise"], p=[0.7, *[0.05] * 6])
    match how:
        case "bit":
            changed[at] ^= 1 << bit
        case "byte":
            changed[at] = int(rng.integers(256))
        case "zeros":
            changed[at : at + length] = bytes(len(changed[at : at + length]))
        case "cut":
            del changed[at:]
        case "lost":
            del changed[at : at + length]
        case "doubled":
            changed[at:at] = changed[at : at + length]
        case "noise":
            changed[at : at + length] = rng.bytes(length)
    return f"{how} at {at} of {len(content)}" + (f", bit {bit}" if how == "bit" else ""), bytes(changed)
