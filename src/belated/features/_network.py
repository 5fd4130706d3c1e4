"""`Network`: learned features, the last hidden layer of a small network fitted to the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy

from belated._kernels.normals import standard_normals
from belated._util.validate import array, integer
from belated.errors import InvalidInputError
from belated.features._base import Dense, Features, checked_vector
from belated.types import Floats, Ints, SparseRows, SparseVector

#: Units of each of the two hidden layers.
UNITS = 64
#: Numbers are clipped at this many standard deviations from their mean.
FARTHEST = 5.0
#: Batch size, learning rate, and update rate of the target network.
BATCH, RATE, RENEWAL = 64, 1e-3, 0.005
#: Adam's decay rates of the gradient and of its square.
SLOW, FAST, TINY = 0.9, 0.999, 1e-8
Singles = npt.NDArray[np.float32]
_FIELDS = ("layers", "target", "mean", "square")


class Transitions(NamedTuple):
    """The training data of a network, in an order independent of arrival."""

    states: Floats
    """The numbers of each observation, shape (S, d)."""
    state: Ints
    action: Ints
    after: Ints
    """The next observation, −1 after a terminal step."""
    rewards: Floats
    """The discounted reward until then."""
    discount: Floats
    """The discount of the next observation's value, 0 after a terminal step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Network(Features):
    """The last hidden layer of a network of action values, and a constant.

    Two layers of 64 ReLU units on standardised inputs. The network is trained like double DQN (Mnih et al. 2015, van
    Hasselt et al. 2016) on the data that has arrived. Agents act on their own regressions on the last hidden layer
    (Levine et al. 2017), or in long episodes on draws from the posterior of the output layer (Azizzadenesheli et al.
    2018).
    """

    kind: ClassVar[str] = "network"

    centre: tuple[float, ...]
    """The mean of each number."""
    scale: tuple[float, ...]
    """The standard deviation of each number; 1 if it is constant."""
    layers: tuple[Any, ...] = field(repr=False)
    """Weights and biases of three layers; the last one is for training only."""
    target: tuple[Any, ...] = field(repr=False)
    """Weights and biases of the target network."""
    mean: tuple[Any, ...] = field(repr=False)
    """Adam's mean gradient."""
    square: tuple[Any, ...] = field(repr=False)
    """Adam's mean squared gradient."""
    trained: int = 0
    """Number of training steps so far."""

    def __post_init__(self) -> None:
        centre = array("centre", self.centre, (None,))
        scale = array("scale", self.scale, (centre.size,))
        integer("trained", self.trained, at_least=0)
        for name in _FIELDS:
            given = getattr(self, name)
            found = tuple(array(f"{name}[{i}]", each, (None,) * (2 - i % 2)) for i, each in enumerate(given))
            shapes = [each.shape for each in found]
            actions = shapes[-1][0] if shapes else 0
            if shapes != _shapes(centre.size, actions) or not (scale > 0.0).all():
                raise InvalidInputError(f"{name} must be the layers of a network for {centre.size} numbers")
            object.__setattr__(self, name, found)
        object.__setattr__(self, "centre", tuple(centre.tolist()))
        object.__setattr__(self, "scale", tuple(scale.tolist()))

    @classmethod
    def begun(cls, numbers: Floats, actions: int, rng: np.random.Generator) -> Self:
        """Return an untrained network, for observations such as those in `numbers` (n, d)."""
        layers: list[Floats] = []
        for shape in _shapes(numbers.shape[1], actions):
            spread = math.sqrt(2.0 / shape[0]) if len(shape) == 2 else 0.0  # He et al. (2015)
            layers.append(spread * rng.standard_normal(shape))
        layers[4] *= 0.01
        zeros = tuple(np.zeros_like(each) for each in layers)
        centre, scale = moments(numbers)
        return cls(
            centre=tuple(centre.tolist()),
            scale=tuple(scale.tolist()),
            layers=tuple(layers),
            target=tuple(layers),
            mean=zeros,
            square=zeros,
        )

    @property
    def size(self) -> int:
        return UNITS + 1

    @cached_property
    def _dense(self) -> Dense:
        return Dense(self.size, self.kind)

    @cached_property
    def _scaling(self) -> tuple[Floats, Floats]:
        return np.array(self.centre), np.array(self.scale)

    def encode(self, observation: Any) -> SparseVector:
        return self._dense(self._values(checked_vector(observation, len(self.centre))))

    def encode_rows(self, numbers: Floats) -> SparseRows:
        return self._dense.rows(self._values(numbers))

    def _values(self, numbers: Floats) -> Floats:
        hidden = self.hidden(numbers)
        return np.concatenate([hidden, np.ones((*hidden.shape[:-1], 1))], axis=-1)

    def hidden(self, numbers: Floats) -> Floats:
        """Return the last hidden layer for one observation, or for one in each row."""
        below: Floats = hidden_layers(self.layers, self.standardised(numbers))[1]
        return below

    def standardised(self, numbers: Floats) -> Floats:
        centre, scale = self._scaling
        return np.minimum(np.maximum((numbers - centre) / scale, -FARTHEST), FARTHEST)

    def rescaled(self, numbers: Floats) -> Self:
        """Return the same function with the scales of `numbers`, equal within the old and the new clipping bounds."""
        (old_centre, old_scale), (centre, scale) = self._scaling, moments(numbers)
        changed: dict[str, Any] = {}
        for name in ("layers", "target"):
            weights, offsets, *rest = getattr(self, name)
            moved = offsets + ((centre - old_centre) / old_scale) @ weights
            changed[name] = ((scale / old_scale)[:, np.newaxis] * weights, moved, *rest)
        return replace(self, centre=tuple(centre.tolist()), scale=tuple(scale.tolist()), **changed)

    def fitted_to(self, data: Transitions, steps: int, bounds: tuple[float, float], rng: np.random.Generator) -> Self:
        """Return the network after `steps` more training steps; next values are clipped to `bounds`."""
        shapes = [each.shape for each in self.layers]
        weights, old, mean, square = (_flat(getattr(self, name)) for name in _FIELDS)
        slopes = np.zeros_like(weights)
        layers, target, into = (_split(each, shapes) for each in (weights, old, slopes))
        inputs = self.standardised(data.states).astype(np.float32)
        rewards, kept = data.rewards.astype(np.float32), data.discount.astype(np.float32)
        for step in range(self.trained + 1, self.trained + steps + 1):
            picked = rng.integers(len(data.state), size=BATCH)
            values = next_values(layers, target, inputs[data.after[picked]], bounds)
            # y = r + γ Q⁻(s', argmax_a Q(s', a)), where nothing follows a terminal step
            wanted = rewards[picked] + kept[picked] * values
            gradient(layers, inputs[data.state[picked]], data.action[picked], wanted, into)
            adam(weights, slopes, mean, square, step)
            old += RENEWAL * (weights - old)
        found = zip(_FIELDS, (weights, old, mean, square), strict=True)
        changed: dict[str, Any] = {name: tuple(_split(each, shapes)) for name, each in found}
        return replace(self, trained=self.trained + steps, **changed)

    def drawn(
        self,
        data: Transitions,
        share: float,
        bounds: tuple[float, float],
        width: float,
        count: int,
        rng: np.random.Generator,
    ) -> Floats:
        """Return `count` draws of the weights ψᵀw_a of each action's value, w_a ~ N(u_a, s²Ω_a⁻¹), shape (count, A, k).

        u_a is the trained output layer, Ω_a = Σψψᵀ + λI over the visits of a, and s is `width` times the root mean
        square of y − ψᵀu_a. Each transition in `data` represents `share` visits.
        """
        psi = self._values(data.states[data.state])
        output = np.concatenate([self.layers[4], self.layers[5][np.newaxis]]).T  # u_a in row a
        values = next_values(self.layers, self.target, self.standardised(data.states[data.after]), bounds)
        wanted = data.rewards + data.discount * values
        spread = width * math.sqrt(np.mean((wanted - np.sum(psi * output[data.action], axis=1)) ** 2))
        ridge = np.square(psi).sum(axis=1).max() / self.size  # the prior has the weight of one visit
        draws = np.empty((count, *output.shape))
        for action, trained in enumerate(output):
            own = psi[data.action == action]
            factor = np.linalg.cholesky(share * (own.T @ own) + ridge * np.eye(self.size))
            normals = standard_normals(rng, (count, self.size)).T
            # Ω = LLᵀ, so L⁻ᵀz has the covariance Ω⁻¹
            noise = scipy.linalg.solve_triangular(factor, normals, lower=True, trans=1, check_finite=False)
            draws[:, action] = trained + spread * noise.T
        return draws

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **{name: [each.tolist() for each in getattr(self, name)] for name in _FIELDS}}


def _shapes(numbers: int, actions: int) -> list[tuple[int, ...]]:
    return [(numbers, UNITS), (UNITS,), (UNITS, UNITS), (UNITS,), (UNITS, actions), (actions,)]


def _flat(layers: Any) -> Singles:
    """Return all layers in one array, in single precision, which suffices for training and takes half the time."""
    return np.concatenate([each.ravel() for each in layers], dtype=np.float32)


def _split(flat: Singles, shapes: list[tuple[int, ...]]) -> list[Singles]:
    """Return the layers of one array, as views."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]


def moments(numbers: Floats) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of each number; 1 for a constant one."""
    spread = numbers.std(axis=0)
    return numbers.mean(axis=0), np.where(spread > 1e-9 * np.abs(numbers).max(axis=0), spread, 1.0)


def forward(layers: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return both hidden layers and the action values of each row of `x`."""
    first, second = hidden_layers(layers, x)
    return first, second, second @ layers[4] + layers[5]


def hidden_layers(layers: Any, x: Any) -> tuple[Any, Any]:
    first = np.maximum(x @ layers[0] + layers[1], 0.0)
    return first, np.maximum(first @ layers[2] + layers[3], 0.0)


def next_values(layers: Any, target: Any, following: Any, bounds: tuple[float, float]) -> Any:
    """Return Q⁻(s', argmax_a Q(s', a)) of each row: `layers` choose, `target` values (van Hasselt et al. 2016)."""
    best = forward(layers, following)[2].argmax(axis=1)
    values = forward(target, following)[2][np.arange(len(best)), best]
    return np.minimum(np.maximum(values, bounds[0]), bounds[1])


def gradient(layers: Any, x: Any, actions: Ints, wanted: Any, into: Any) -> None:
    """Write the gradient of the mean Huber loss of the values of `actions` to `into`."""
    first, second, values = forward(layers, x)
    rows = np.arange(len(x))
    slope = np.zeros_like(values)
    slope[rows, actions] = np.clip(values[rows, actions] - wanted, -1.0, 1.0) / len(x)
    below = (slope @ layers[4].T) * (second > 0.0)
    bottom = (below @ layers[2].T) * (first > 0.0)
    for i, (inputs, outputs) in enumerate(((x, bottom), (first, below), (second, slope))):
        np.dot(inputs.T, outputs, out=into[2 * i])
        outputs.sum(axis=0, out=into[2 * i + 1])


def adam(weights: Any, slopes: Any, mean: Any, square: Any, step: int) -> None:
    """Take step number `step` of Adam (Kingma and Ba 2015)."""
    rate = RATE * math.sqrt(1.0 - FAST**step) / (1.0 - SLOW**step)
    mean += (1.0 - SLOW) * (slopes - mean)
    square += (1.0 - FAST) * (slopes * slopes - square)
    weights -= rate * mean / (np.sqrt(square) + TINY)
