"""`FromCallable`, `Joint` and `FromSklearn`: features from a function or a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from belated._util.plugins import load, name_of
from belated._util.validate import array, integer, refuse
from belated.errors import InvalidInputError
from belated.features._base import MOST_DENSE, Dense, Features, Seen, vector
from belated.types import Floats, SparseRows, SparseVector

#: The maximum number of observations that a transformer is fitted to.
FITTED_ON = 500


@dataclass(frozen=True, kw_only=True)
class _FromFunction(Features):
    """Features computed by a function, which can be saved if it is importable or given by name."""

    function: Callable[..., Any] | str

    def __post_init__(self) -> None:
        if not isinstance(self.function, str) and not callable(self.function):
            raise refuse("function", self.function, "a function, or a name of the form 'package.module:name'")
        if isinstance(self.function, str) and (isinstance(self._call, type) or not callable(self._call)):
            raise refuse("function", self.function, "the name of a function")

    @cached_property
    def _call(self) -> Callable[..., Any]:
        call: Callable[..., Any] = load("function", self.function) if isinstance(self.function, str) else self.function
        return call

    def _features(self, *given: Any) -> Floats:
        """Return the function's features of an observation, or of an observation and an action."""
        try:
            made = self._call(*given)
        except Exception as error:  # user code may raise anything
            why = f"{type(error).__name__}: {error}"
            raise InvalidInputError(f"function {self.function!r} cannot encode an observation: {why}") from error
        return numbers("function", made)

    def to_dict(self) -> dict[str, Any]:
        name = self.function if isinstance(self.function, str) else name_of(self.function)
        if name is None:
            raise refuse("function", self.function, "importable as 'package.module:name' to be saved")
        return {**super().to_dict(), "function": name}


@dataclass(frozen=True, kw_only=True)
class FromCallable(_FromFunction):
    """The output of a function of the observation, such as a frozen encoder.

    `function` gets the observation as it is and returns `width` numbers, as a list, an array or a tensor, always the
    same for the same observation. A function that is importable, or given by name as `"package.module:name"`, can be
    saved and used in configuration files.

    >>> FromCallable(function=lambda observation: [1.0, observation], width=2).encode(3).values.tolist()
    [1.0, 3.0]
    """

    kind: ClassVar[str] = "callable"

    width: int | None = None
    """Number of features that the function returns; None to infer it from the environment's first observation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width is not None:
            integer("width", self.width, at_least=1)

    @cached_property
    def _dense(self) -> Dense:
        if self.width is None:
            raise InvalidInputError("width of 'callable' features must be given, or fitted to an environment")
        return Dense(self.width, self.kind)

    def fitted(self, seen: Seen) -> Self:
        """Return the same map with its width; raise InvalidInputError if the function is not deterministic."""
        first = seen.observations[0]
        features = self._features(first)
        filled = self if self.width is not None else replace(self, width=features.size)
        if not np.array_equal(filled.encode(first).values, features):
            raise refuse(
                "function", self.function, "deterministic: the same observation has given two different features"
            )
        return filled

    @property
    def size(self) -> int:
        return self._dense.indices.size

    def encode(self, observation: Any) -> SparseVector:
        dense = self._dense
        return dense(checked_width("function", self._features(observation), dense.indices.size))


@dataclass(frozen=True, kw_only=True)
class FromSklearn(Features):
    """The output of a scikit-learn transformer for the numbers in an observation.

    An unfitted transformer is fitted to observations of random play, and saved as its class, its settings and those
    observations. A transformer that you have fitted can only be saved by name, `"package.module:name"`.

    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> fitted = PolynomialFeatures(2).fit([[0.0, 0.0]])
    >>> FromSklearn(transformer=fitted).encode(np.array([2.0, 3.0])).values.tolist()
    [1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
    """

    kind: ClassVar[str] = "sklearn"

    transformer: Any
    settings: dict[str, Any] | None = None
    """If `transformer` is the name of a class: the settings to construct it with."""
    rows: tuple[tuple[float, ...], ...] | None = field(default=None, repr=False)
    """The observations it was fitted to; None if it was fitted elsewhere."""

    def __post_init__(self) -> None:
        if self.rows is not None:
            table = array("rows", self.rows, (None, None))
            object.__setattr__(self, "rows", tuple(map(tuple, table.tolist())))
        _ = self._transformer  # created and checked now, while a file that names it is being read

    @cached_property
    def _transformer(self) -> Any:
        if self.rows is None:
            return self._unfitted
        from sklearn.base import clone

        return clone(self._unfitted).fit(np.array(self.rows))

    @cached_property
    def _unfitted(self) -> Any:
        found = load("transformer", self.transformer) if isinstance(self.transformer, str) else self.transformer
        if not all(callable(getattr(found, name, None)) for name in ("fit", "transform", "get_params")):
            expected = "a scikit-learn transformer, with fit and transform and derived from its BaseEstimator"
            raise refuse("transformer", self.transformer, expected)
        if isinstance(found, type):
            try:
                return found(**(self.settings or {}))
            except TypeError as error:
                raise InvalidInputError(f"settings of the transformer {self.transformer!r}: {error}") from None
        if self.settings is not None:
            raise refuse("settings", self.settings, "left out unless the transformer is the name of a class")
        return found

    @cached_property
    def _dense(self) -> Dense:
        if not _is_fitted(self._transformer):
            raise InvalidInputError("the transformer of 'sklearn' features must be fitted, or fitted to an environment")
        rows = self.rows or (tuple([0.0] * int(getattr(self._transformer, "n_features_in_", 1))),)
        return Dense(self._transform(np.array(rows[0])).size, self.kind)

    def fitted(self, seen: Seen) -> Self:
        """Return the same map, fitted to observations of the environment if it is not fitted yet."""
        if _is_fitted(self._transformer):
            return self
        every = [vector(observation) for observation in seen.observations]
        table = every[:: max(1, -(-len(every) // FITTED_ON))]
        return replace(self, rows=tuple(tuple(row.tolist()) for row in table))

    @property
    def size(self) -> int:
        return self._dense.indices.size

    def encode(self, observation: Any) -> SparseVector:
        dense = self._dense
        return dense(checked_width("transformer", self._transform(vector(observation)), dense.indices.size))

    def _transform(self, row: Floats) -> Floats:
        try:
            made = self._transformer.transform(row[np.newaxis])
        except ValueError as error:
            raise InvalidInputError(f"the transformer rejects an observation: {error}") from None
        return numbers("transformer", made.toarray() if hasattr(made, "toarray") else made)

    def to_dict(self) -> dict[str, Any]:
        values = super().to_dict()
        if isinstance(self.transformer, str):
            return values
        name, settings = name_of(type(self.transformer)), self.transformer.get_params()
        plain = all(isinstance(each, bool | int | float | str | None) for each in settings.values())
        if name is None or not plain or (self.rows is None and _is_fitted(self.transformer)):
            expected = "given by name, 'package.module:name', or unfitted and with plain settings, to be saved"
            raise refuse("transformer", self.transformer, expected)
        chosen = {key: value for key, value in settings.items() if value is not None}
        return {**values, "transformer": name, "settings": chosen}


def _is_fitted(transformer: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


def numbers(what: str, given: Any) -> Floats:
    """Return the output of a function or transformer as an array of finite numbers."""
    given = given.detach().cpu() if hasattr(given, "detach") else given  # a tensor
    try:
        out = np.asarray(given, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        raise refuse(f"what the {what} returns", given, "numbers") from None
    if not np.isfinite(out).all():
        where = int(np.argmin(np.isfinite(out)))
        raise InvalidInputError(f"the {what} must return finite features, got {out[where]} at index {where}")
    return out


def checked_width(what: str, features: Floats, width: int) -> Floats:
    if features.size != width:
        raise InvalidInputError(f"the {what} must always return {width} features, got {features.size}")
    return features


@dataclass(frozen=True, kw_only=True)
class Joint(_FromFunction):
    """φ(s, a) as a function of observation and action, so that actions can share what is learned.

    `function(observation, action)` returns `width` numbers and must be deterministic. If it is given as
    `"package.module:name"`, or importable under such a name, it can be saved and used in experiment files.

    >>> phi = Joint(function=lambda observation, action: [1.0, observation * action], actions=2, width=2)
    >>> phi.encode(3.0).values.tolist()
    [1.0, 1.0, 3.0]
    """

    kind: ClassVar[str] = "joint"

    actions: int | None = None
    """Number of actions; None for the environment's."""
    width: int | None = None
    """Number of features; None to infer it from the environment's first observation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("actions", self.actions), ("width", self.width)):
            if value is not None:
                integer(name, value, at_least=1)
        if self.width is not None:
            integer("width", self.width, at_most=MOST_DENSE)

    @property
    def size(self) -> int:
        if self.width is None:
            raise refuse("width", None, "given, or inferred from an environment")
        return self.width

    def fitted(self, seen: Seen) -> Self:
        first = seen.observations[0]
        features = self._features(first, 0)
        if self.actions not in (None, seen.actions):
            raise refuse("actions", self.actions, f"{seen.actions}, the number of actions of the environment")
        filled = replace(self, actions=seen.actions, width=self.width or features.size)
        if not np.array_equal(self._features(first, 0), features):
            raise refuse("function", self.function, "deterministic: the same pair has given two different features")
        return filled

    def encode(self, observation: Any) -> SparseRows:
        if self.actions is None:
            raise refuse("actions", None, "given, or inferred from an environment")
        rows = [self._features(observation, action) for action in range(self.actions)]
        for row in rows:
            if row.size != self.size or not np.isfinite(row).all():
                raise refuse("function", row, f"returning {self.size} finite numbers")
        nonzero = [np.flatnonzero(row) for row in rows]
        return SparseRows(
            np.cumsum([0, *map(len, nonzero)]),
            np.concatenate(nonzero),
            np.concatenate([row[kept] for row, kept in zip(rows, nonzero, strict=True)]),
        )
