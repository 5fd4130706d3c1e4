"""A package that cannot be written to and a user without a home: kernels run, and never those of an older version."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from attacks.tally import NotBuiltError, Tally
from attacks.versions import copy_package, run_with

NOWHERE = "/dev/null/nowhere"
"""A folder that nobody can make, not even root."""
INNER = """
from belated._kernels.jit import kernel

@kernel
def inner(x):
    return x * {factor}
"""
OUTER = """
from belated._kernels.jit import kernel
from belated.made_inner import inner

@kernel
def outer(x):
    return inner(x)
"""
ASK = "from belated.made_outer import outer; print(outer(1.5)); print(outer(1.5))"


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Run a kernel where nothing can be kept, and where it was kept by an older version."""
    if importlib.util.find_spec("belated._kernels.cache") is None:
        raise NotBuiltError("compiled code is kept in the package's folder only")
    for turn in range(tries):
        if not tally.left():
            return
        package = copy_package(folder / f"package-{turn}")
        for path in [package, *package.rglob("*/")]:
            (path / "__pycache__").write_bytes(b"")  # a file, so that no folder of that name can be made
        (package / "made_outer.py").write_text(OUTER, encoding="utf-8")
        home = folder / f"home-{turn}"
        home.mkdir()
        with tally.attempt("no home, and a package that cannot be written to"):
            told = _ask(package, 2, NOWHERE)
            assert told.count("cannot be cached") == 1, f"not said, or not once: {told[-300:]}"
        with tally.attempt("an upgrade, with a home"):
            for factor in (2, 20):
                told = _ask(package, factor, str(home))
                assert "cannot be cached" not in told, told[-300:]


def _ask(package: Path, factor: int, home: str) -> str:
    """Return what is said on stderr while a kernel that multiplies by `factor` runs."""
    (package / "made_inner.py").write_text(INNER.format(factor=factor), encoding="utf-8")
    told = run_with(package, "-c", ASK, HOME=home)
    assert told.returncode == 0, told.stderr[-300:]
    assert told.stdout.split() == [str(1.5 * factor)] * 2, f"stale machine code: {told.stdout}"
    return told.stderr
