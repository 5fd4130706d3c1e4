"""The errors belated raises on purpose.

Every message names the parameter, the value that was given and what was expected, and is raised
before anything is changed.
"""


class BelatedError(Exception):
    """Base class of every error raised on purpose by belated."""


class InvalidInputError(BelatedError, ValueError):
    """A parameter, an array or a file's content is not what the function accepts."""


class UnknownNameError(BelatedError, LookupError):
    """A name is unknown; the message lists the valid ones or suggests the nearest."""


class DamagedFileError(BelatedError):
    """A file is truncated, corrupted, foreign, or written by a newer version."""


class MissingExtraError(BelatedError):
    """An optional dependency is not installed; the message names the extra that provides it."""
