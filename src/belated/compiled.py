"""The building blocks of your own compiled agents.

An agent's settings derive from `CompiledSettings` and return a `Record`, a `NamedTuple` of arrays with the methods
`plan`, `learn` and `settle`. The functions that these call are decorated with `kernel`, small sums of products with
`fast_sums`, and `inlined` replaces a call by the function's body. An agent on regressions derives from
`RegressionSettings` and shares `sweep` and `learn_visits`; a `WeightRule` lets it play in simulators, too. The how-to
on agents has a skeleton to copy.
"""

from belated._kernels.jit import fast_sums, inlined, kernel
from belated._kernels.normals import standard_normal, standard_normals
from belated._kernels.planning import linear_values
from belated.agents._base import Arrival, CompiledSettings, Nothing, Record
from belated.agents._regression import (
    Regression,
    RegressionSettings,
    Table,
    Work,
    learn_visits,
    make_regression,
    make_table,
    make_work,
    mean_weights,
    regression_of,
    sweep,
)
from belated.agents._sparse import SparseRegression, WeightRule

__all__ = [
    "Arrival",
    "CompiledSettings",
    "Nothing",
    "Record",
    "Regression",
    "RegressionSettings",
    "SparseRegression",
    "Table",
    "WeightRule",
    "Work",
    "fast_sums",
    "inlined",
    "kernel",
    "learn_visits",
    "linear_values",
    "make_regression",
    "make_table",
    "make_work",
    "mean_weights",
    "regression_of",
    "standard_normal",
    "standard_normals",
    "sweep",
]
