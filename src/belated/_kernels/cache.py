"""The cache of compiled kernels: a folder that cannot go stale and that only the user can write to.

Numba's cache of a function looks only at that function's own file, so a kernel that calls a kernel of another file
could go on running old machine code after an edit or an upgrade. Here the folder's name holds a digest of every file
that has kernels and of all else that machine code depends on, which makes that impossible, wherever the folder is.

Machine code is run as it is found. So the folder is made for the user alone, and one that others may
write to is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

PREFIX = "belated-kernels-"
#: Seconds after which a folder that nobody has used is removed: six weeks.
UNUSED = 6 * 7 * 86_400
_DAY = 86_400


def user_folder() -> Path:
    """Return the user's cache folder for this library: `BELATED_CACHE`, or where this system keeps caches."""
    if wanted := os.environ.get("BELATED_CACHE"):
        return Path(wanted)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "belated" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "belated"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "belated"


def digest_of(package: Path, *facts: str) -> str:
    """Return a digest of every file of `package` that has kernels, and of `facts`."""
    digest = hashlib.sha256("\n".join(facts).encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"belated._kernels.jit" in source or path.name == "jit.py":
            digest.update(source)
    return digest.hexdigest()[:16]


def kernel_folder(digest: str, numba_folder: str = "") -> Path:
    """Return the folder of kernels with that digest, made if need be; an `OSError` says why there cannot be one.

    `BELATED_CACHE` says where, else the folder that the user has given Numba, else the user's cache folder.
    """
    try:
        parent = Path(numba_folder) if numba_folder and not os.environ.get("BELATED_CACHE") else user_folder()
    except RuntimeError as error:  # there is no home
        raise OSError(str(error)) from None
    folder = parent.absolute() / (PREFIX + digest)
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        _touch(folder)
    else:
        _remove_unused(folder.parent)
    _check_ours(folder)
    tempfile.TemporaryFile(dir=folder).close()  # it can be written to
    return folder


def _check_ours(folder: Path) -> None:
    """Raise `OSError` for a folder that others can write to, or could replace."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        raise OSError(f"{folder} is not a folder")
    if os.name == "nt":  # where it lies, in the user's profile, only the user may write
        return
    if about.st_uid != os.geteuid():
        raise OSError(f"{folder} belongs to somebody else")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"others may write to {folder}")
    for parent in folder.parents:
        above = parent.stat()
        shared = above.st_mode & stat.S_IWOTH or (above.st_mode & stat.S_IWGRP and not _is_ours_alone(above.st_gid))
        if shared and not above.st_mode & stat.S_ISVTX:
            raise OSError(f"others may write to {parent}")


def _is_ours_alone(group: int) -> bool:
    """Whether a group has no member but this user: many systems give every user one, and let it write by default."""
    import grp
    import pwd

    if group == 0:
        return True  # whoever is in it may write everywhere
    try:
        user = pwd.getpwuid(os.geteuid())
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:  # nobody has told this system who that is
        return False
    others = any(each.pw_gid == group and each.pw_uid != user.pw_uid for each in pwd.getpwall())
    return user.pw_gid == group and members <= {user.pw_name} and not others


def _touch(folder: Path) -> None:
    """Note, once a day, that the folder is in use."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def _remove_unused(parent: Path) -> None:
    """Remove the folders of other digests that nobody has used for long."""
    for folder in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if stat.S_ISDIR(about.st_mode) and time.time() - about.st_mtime > UNUSED:
                shutil.rmtree(folder, ignore_errors=True)
