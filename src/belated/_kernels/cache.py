"""The cache of compiled kernels: a folder that cannot become stale and that only the user can write to.

Numba's cache of a function checks only that function's own file, so a kernel that calls a kernel of another file could
keep running old machine code after an edit or an upgrade. Here the folder's name contains a digest of every file with
kernels and of everything else that machine code depends on, which makes that impossible.

Cached machine code is executed without further checks. So the folder is private to the user, and a folder that others
may write to is rejected.
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
#: Seconds after which an unused folder is removed: six weeks.
UNUSED = 6 * 7 * 86_400
_DAY = 86_400


def user_folder() -> Path:
    """Return the user's cache folder for this library: `BELATED_CACHE`, or the system's default."""
    if wanted := os.environ.get("BELATED_CACHE"):
        return Path(wanted)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "belated" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "belated"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "belated"


def digest_of(package: Path, *facts: str) -> str:
    """Return a digest of every file of `package` with kernels, and of `facts`."""
    digest = hashlib.sha256("\n".join(facts).encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"belated._kernels.jit" in source or path.name == "jit.py":
            digest.update(source)
    return digest.hexdigest()[:16]


def kernel_folder(digest: str, numba_folder: str = "") -> Path:
    """Return the folder of kernels with this digest, created if necessary; raises `OSError` if that is impossible.

    It is in `BELATED_CACHE`, else in Numba's configured cache folder, else in the user's cache folder.
    """
    try:
        parent = Path(numba_folder) if numba_folder and not os.environ.get("BELATED_CACHE") else user_folder()
    except RuntimeError as error:  # there is no home directory
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
    tempfile.TemporaryFile(dir=folder).close()  # check that it is writable
    return folder


def _check_ours(folder: Path) -> None:
    """Raise `OSError` for a folder that others can write to, or could replace."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        raise OSError(f"{folder} is not a folder")
    if os.name == "nt":  # the user's profile is private
        return
    if about.st_uid != os.geteuid():
        raise OSError(f"{folder} belongs to another user")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"others may write to {folder}")
    for parent in folder.parents:
        above = parent.stat()
        shared = above.st_mode & stat.S_IWOTH or (above.st_mode & stat.S_IWGRP and not _is_ours_alone(above.st_gid))
        if shared and not above.st_mode & stat.S_ISVTX:
            raise OSError(f"others may write to {parent}")


def _is_ours_alone(group: int) -> bool:
    """Whether a group has no other member: many systems give every user a private group with write permission."""
    import grp
    import pwd

    if group == 0:
        return True  # its members may write everywhere
    try:
        user = pwd.getpwuid(os.geteuid())
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:  # the user is unknown to the system
        return False
    others = any(each.pw_gid == group and each.pw_uid != user.pw_uid for each in pwd.getpwall())
    return user.pw_gid == group and members <= {user.pw_name} and not others


def _touch(folder: Path) -> None:
    """Mark the folder as in use, once a day."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def _remove_unused(parent: Path) -> None:
    """Remove the folders of other digests that have not been used for long."""
    for folder in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if stat.S_ISDIR(about.st_mode) and time.time() - about.st_mtime > UNUSED:
                shutil.rmtree(folder, ignore_errors=True)
