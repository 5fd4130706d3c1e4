"""Compiled code is kept in one place, which is ours, never stale, and never in the way."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numba
import pytest

from belated._kernels import cache, jit

SOURCES = Path(jit.__file__).parents[1]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="owners and rights of folders are those of POSIX")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test a home, and no other wish for a cache."""
    for name in ("BELATED_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_folder_is_the_users_own(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.user_folder() == home / ".cache" / "belated"
    folder = cache.kernel_folder("abc")
    assert folder == home / ".cache" / "belated" / "belated-kernels-abc"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert cache.kernel_folder("abc") == folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.user_folder() == tmp_path / "xdg" / "belated"
    assert cache.kernel_folder("abc", str(tmp_path / "numba")).parent == tmp_path / "numba"
    monkeypatch.setenv("BELATED_CACHE", str(tmp_path / "wanted"))
    assert cache.kernel_folder("abc", str(tmp_path / "numba")).parent == tmp_path / "wanted"


def test_other_systems_have_other_customs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.user_folder() == home / "Library" / "Caches" / "belated"


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache.kernel_folder("abc", str(tmp_path / "numba"))
    for mode in (0o720, 0o702, 0o777):
        folder.chmod(mode)
        with pytest.raises(OSError, match=r"others may write to .*belated-kernels-abc"):
            cache.kernel_folder("abc", str(tmp_path / "numba"))
    folder.chmod(0o755)  # they may read
    assert cache.kernel_folder("abc", str(tmp_path / "numba")) == folder
    (tmp_path / "numba").chmod(0o777)  # they could exchange it
    with pytest.raises(OSError, match=r"others may write to .*numba$"):
        cache.kernel_folder("abc", str(tmp_path / "numba"))
    (tmp_path / "numba").chmod(0o1777)  # only the owner may exchange it, as in /tmp
    assert cache.kernel_folder("abc", str(tmp_path / "numba")) == folder
    (tmp_path / "numba").chmod(0o770)
    monkeypatch.setattr(cache, "_is_ours_alone", lambda group: False)
    with pytest.raises(OSError, match=r"others may write to .*numba$"):
        cache.kernel_folder("abc", str(tmp_path / "numba"))
    monkeypatch.setattr(cache, "_is_ours_alone", lambda group: True)
    assert cache.kernel_folder("abc", str(tmp_path / "numba")) == folder
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(OSError, match="belongs to another user"):
        cache.kernel_folder("abc", str(tmp_path / "numba"))


def test_a_group_with_other_members_is_not_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    def account(name: str, user: int, group: int) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", user, group, "", "/", "/bin/sh"))

    users, members = [account("ann", 7, 70), account("bob", 8, 80)], list[str]()
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: next(each for each in users if each.pw_uid == user))
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    monkeypatch.setattr(grp, "getgrgid", lambda group: grp.struct_group(("some", "x", group, members)))
    assert cache._is_ours_alone(70) and cache._is_ours_alone(0)
    assert not cache._is_ours_alone(80)
    members.append("ann")
    assert cache._is_ours_alone(70)
    members.append("bob")
    assert not cache._is_ours_alone(70)
    members.clear()
    users.append(account("cy", 9, 70))
    assert not cache._is_ours_alone(70)


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "belated-kernels-abc").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "belated-kernels-def").write_text("")
    for digest in ("abc", "def"):
        with pytest.raises(OSError, match="is not a folder"):
            cache.kernel_folder(digest, str(tmp_path))


def test_folders_that_nobody_has_used_for_long_are_removed_when_a_new_one_is_made(tmp_path: Path) -> None:
    old, recent, other = (tmp_path / name for name in ("belated-kernels-old", "belated-kernels-recent", "theirs"))
    for folder in (old, recent, other):
        folder.mkdir()
        (folder / "code").write_text("x")
    long_ago = time.time() - cache.UNUSED - 3600
    os.utime(old, (long_ago, long_ago))
    os.utime(other, (long_ago, long_ago))
    os.utime(recent, (long_ago + 7200, long_ago + 7200))
    cache.kernel_folder("new", str(tmp_path))
    assert sorted(path.name for path in tmp_path.glob("*") if path.name != "home") == [
        "belated-kernels-new",
        "belated-kernels-recent",
        "theirs",
    ]
    os.utime(recent, (long_ago, long_ago))
    recent.chmod(0o700)
    cache.kernel_folder("recent", str(tmp_path))  # is used
    assert recent.stat().st_mtime > long_ago + 7200


def test_the_digest_follows_every_file_with_kernels_and_every_fact(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "kernels.py").write_text("from belated._kernels.jit import kernel\n")
    (tmp_path / "plain.py").write_text("x = 1\n")
    first = cache.digest_of(tmp_path, "a", "b")
    (tmp_path / "plain.py").write_text("x = 2\n")
    assert cache.digest_of(tmp_path, "a", "b") == first
    assert cache.digest_of(tmp_path, "a", "c") != first
    (tmp_path / "part" / "kernels.py").write_text("from belated._kernels.jit import kernel  # edited\n")
    second = cache.digest_of(tmp_path, "a", "b")
    (tmp_path / "more.py").write_text("from belated._kernels.jit import fast_sums\n")
    assert len({first, second, cache.digest_of(tmp_path, "a", "b")}) == 3


def test_processor_version_and_mode_are_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, config = {jit._facts()}, numba.config
    for where, name, value in (
        (jit, "STRICT", not jit.STRICT),
        (numba, "__version__", "0.0"),
        (config, "CPU_NAME", "nocona"),
        (config, "CPU_FEATURES", "+sse"),
    ):
        monkeypatch.setattr(where, name, value)
        seen.add(jit._facts())
    assert len(seen) == 5


def test_constants_of_kernels_are_defined_in_files_with_kernels() -> None:
    """A constant is a part of the machine code, so that the digest must follow the file it is defined in."""
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    followed = {path for path, text in sources.items() if "belated._kernels.jit" in text or path.name == "jit.py"}
    for path in followed:
        tree = ast.parse(sources[path])
        inside = [name for kernel in _kernels(tree) for name in ast.walk(kernel) if isinstance(name, ast.Name)]
        used = {name.id for name in inside if name.id.lstrip("_").isupper()}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and used & {alias.name for alias in node.names}:
                module = SOURCES.parent.joinpath(*(node.module or "").split("."))
                assert {module.with_suffix(".py"), module / "__init__.py"} & followed, f"{path}: {ast.unparse(node)}"


def _kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    kinds = ("kernel", "fast_sums", "inlined", "entry_point")
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(each).endswith(kinds) for each in node.decorator_list)
    ]


SCALED = "from belated.outer import scaled; print(scaled(1.0))"


class Installed:
    """A copy of the library's compiling parts, and two small files of kernels, run in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.package = folder, folder / "site" / "belated"
        (self.package / "_kernels").mkdir(parents=True)
        for empty in ("__init__.py", "_kernels/__init__.py"):
            (self.package / empty).touch()
        for name in ("cache.py", "jit.py"):
            shutil.copy(SOURCES / "_kernels" / name, self.package / "_kernels")
        (self.package / "outer.py").write_text(
            "from belated._kernels.jit import entry_point\n"
            "from belated.inner import factor\n"
            "@entry_point\n"
            "def scaled(x):\n"
            "    return factor() * x\n"
            "def hits():\n"
            "    return sum(sum(made.stats.cache_hits.values()) for made in scaled._made.values())\n"
        )
        self.release("3.0")

    def release(self, factor: str) -> None:
        text = f"from belated._kernels.jit import kernel\n@kernel\ndef factor():\n    return {factor}\n"
        (self.package / "inner.py").write_text(text)

    def start(self, program: str, **environment: str) -> subprocess.Popen[str]:
        where = {**os.environ, "PYTHONPATH": str(self.package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        command = [sys.executable, "-c", program]
        return subprocess.Popen(command, env=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, program: str = SCALED, **more: str) -> tuple[str, str]:
        """Return what the program wrote to stdout and to stderr."""
        process = self.start(program, **more)
        out, err = process.communicate()
        assert process.returncode == 0, err
        return out.strip(), err


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_after_an_upgrade_of_a_read_only_package_the_new_code_runs(installed: Installed, home: Path) -> None:
    (installed.package / "__pycache__").write_text("")  # nothing can be written there, by anybody
    assert installed.run() == ("3.0", "")
    hits = "from belated.outer import hits, scaled; scaled(1.0); print(hits())"
    assert installed.run(hits) == ("1", "")
    installed.release("30.0")
    assert installed.run() == ("30.0", "")
    kept = list((home / ".cache" / "belated").iterdir()) if sys.platform == "linux" else [Path(), Path()]
    assert len(kept) == 2
    assert sorted(path.name for path in installed.package.iterdir() if path.is_dir()) == ["_kernels"]


def test_where_nothing_can_be_written_it_compiles_and_says_so_once(installed: Installed, tmp_path: Path) -> None:
    (installed.package / "__pycache__").write_text("")
    (tmp_path / "file").write_text("")
    out, err = installed.run(HOME=str(tmp_path / "file" / "home"))
    assert out == "3.0"
    assert err.count("RuntimeWarning: compiled code cannot be cached") == 1
    assert "set BELATED_CACHE to a private folder" in err


def test_code_that_others_could_have_written_is_not_run(installed: Installed, tmp_path: Path) -> None:
    place = {"BELATED_CACHE": str(tmp_path / "shared")}
    assert installed.run(**place) == ("3.0", "")
    (folder,) = (tmp_path / "shared").iterdir()
    folder.chmod(0o777)
    program = "from belated.outer import hits, scaled; print(scaled(1.0), hits())"
    out, err = installed.run(program, **place)
    assert out == "3.0 0"
    assert f"others may write to {folder}" in err


def test_damaged_files_are_compiled_again(installed: Installed, tmp_path: Path) -> None:
    place = {"BELATED_CACHE": str(tmp_path / "kept")}
    program = "from belated.outer import hits, scaled; print(scaled(1.0), hits())"
    installed.run(**place)
    for ending in ("nbi", "nbc"):
        for path in (tmp_path / "kept").rglob(f"*scaled*.{ending}"):
            path.write_bytes(path.read_bytes()[:20])
        assert installed.run(program, **place) == ("3.0 0", "")
        assert installed.run(program, **place) == ("3.0 1", "")


#: Compiles `scaled` for one type, and lets the files of the other type appear at the worst moment, if it can.
MEANWHILE = """
import os, pathlib, sys, time
from belated.outer import scaled
given, marks = sys.argv[1], pathlib.Path(sys.argv[2])

def reach(mark, wait_for=None):
    (marks / mark).touch()
    waited = time.monotonic()
    while wait_for and not (marks / wait_for).exists() and time.monotonic() - waited < 2:
        time.sleep(0.01)

before = {"float": {"nbi": ("float at index", "int at index"), "nbc": ("float at code", "int has code")},
          "int": {"nbi": ("int at index", "float at code")}}[given]
replace = os.replace
def replace_late(source, target):
    ending = str(target).rpartition(".")[2]
    if "scaled" in str(target) and ending in before:
        reach(*before[ending])
    replace(source, target)
    if "scaled" in str(target) and ending == "nbc":
        reach(f"{given} has code")
os.replace = replace_late
print(scaled({"int": 2, "float": 2.5}[given]))
"""


def test_two_processes_that_compile_at_once_do_not_mix_up_their_code(installed: Installed, tmp_path: Path) -> None:
    """In one folder the index of one and the code of the other could stay, under one name."""
    marks, place = tmp_path / "marks", {"BELATED_CACHE": str(tmp_path / "kept")}
    marks.mkdir()
    processes = [
        installed.start(f"import sys; sys.argv = ['', {given!r}, {str(marks)!r}]\n{MEANWHILE}", **place)
        for given in ("int", "float")
    ]
    for process, expected in zip(processes, ("6.0", "7.5"), strict=True):
        out, err = process.communicate()
        assert (process.returncode, out.strip(), err) == (0, expected, "")
    again = "from belated.outer import hits, scaled; print(scaled(2), scaled(2.5), hits())"
    assert installed.run(again, **place) == ("6.0 7.5 2", "")


FULL = """
import os
replace = os.replace
def full(source, target):
    if str(target).endswith(("nbi", "nbc")):
        raise OSError(28, "No space left on device")
    replace(source, target)
os.replace = full
from belated.outer import hits, scaled
print(scaled(1.0), scaled(2.0), hits())
"""


def test_a_full_disk_stops_nobody(installed: Installed, tmp_path: Path) -> None:
    out, err = installed.run(FULL, BELATED_CACHE=str(tmp_path / "kept"))
    assert out == "3.0 6.0 0"
    assert err.count("No space left on device") == 1
    assert "set BELATED_CACHE to a private folder" in err
    assert installed.run(BELATED_CACHE=str(tmp_path / "kept")) == ("3.0", "")


def test_what_has_no_file_is_compiled_without_being_kept() -> None:
    scope: dict[str, Any] = {"entry_point": jit.entry_point}
    exec("@entry_point\ndef double(x):\n    return 2 * x", scope)
    assert scope["double"](4) == 8
