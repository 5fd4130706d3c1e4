from __future__ import annotations

import pytest

from belated import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.InvalidInputError, ValueError),
        (errors.UnknownNameError, LookupError),
        (errors.DamagedFileError, Exception),
    ],
)
def test_every_error_can_be_caught_as_the_librarys_and_as_pythons(
    error: type[errors.BelatedError], builtin: type[Exception]
) -> None:
    for kind in (errors.BelatedError, builtin):
        with pytest.raises(kind, match=r"^mean must be > 0, got -1$"):
            raise error("mean must be > 0, got -1")
