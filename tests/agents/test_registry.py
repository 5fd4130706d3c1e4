"""Settings validate themselves, name what is wrong, and survive a round trip through plain values."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

import belated
from belated.agents import (
    AGENTS,
    BOLD,
    QPMD,
    Ablation,
    AutoPSVI,
    DelayedDAPO,
    DelayedLPSVI,
    DelayedOFU,
    DelayedOPPO,
    DelayedPHE,
    DelayedPSLB,
    DelayedPSRL,
    DelayedPSVI,
    DelayedQLearning,
    DelayedUCBVI,
    EpsilonGreedy,
    FixedPolicy,
    Greedy,
    LearnByAge,
    MultiBatch,
    OTFLinTS,
    OTFLinUCB,
    RandomPolicy,
    RareSwitching,
    Settings,
    TabularUCBVI,
    VarianceWeightedPSVI,
    agent_from_dict,
)
from belated.errors import InvalidInputError, UnknownNameError

NOT_POSITIVE: list[Any] = [0, 0.0, -1.0, float("nan"), float("inf"), "1", None, True, [1.0]]
NEGATIVE: list[Any] = [-0.5, float("nan"), float("inf"), "1", None, True]
NOT_COUNTS: list[Any] = [0, -3, 1.0, "2", None, True]

BAD: list[tuple[type[Settings] | type[Ablation], str, list[Any]]] = [
    (DelayedPSVI, "draws", NOT_COUNTS),
    (DelayedPSVI, "scale", NEGATIVE),
    (DelayedPSVI, "noise", NOT_POSITIVE),
    (DelayedPSVI, "ridge", NOT_POSITIVE),
    (DelayedPSVI, "storage", ["float16", "", None, 32]),
    (VarianceWeightedPSVI, "draws", NOT_COUNTS),
    (VarianceWeightedPSVI, "scale", NEGATIVE),
    (VarianceWeightedPSVI, "noise", NOT_POSITIVE),
    (VarianceWeightedPSVI, "ridge", NOT_POSITIVE),
    (VarianceWeightedPSVI, "shared", [0, None, "yes"]),
    (VarianceWeightedPSVI, "cap", [0, None, "yes"]),
    (VarianceWeightedPSVI, "ties", ["last", "", None, 0]),
    (DelayedPHE, "draws", NOT_COUNTS),
    (DelayedPHE, "scale", NEGATIVE),
    (DelayedPHE, "noise", NOT_POSITIVE),
    (DelayedPHE, "ridge", NOT_POSITIVE),
    (DelayedPHE, "tolerance", [*NOT_POSITIVE, 1.0]),
    (DelayedPHE, "ties", ["last", "", None, 0]),
    *((algorithm, "cap", [0, None, "yes"]) for algorithm in (DelayedPSVI, DelayedLPSVI, DelayedPHE)),
    (DelayedLPSVI, "draws", NOT_COUNTS),
    (DelayedLPSVI, "steps", NOT_COUNTS),
    (DelayedLPSVI, "temperature", NEGATIVE),
    (DelayedLPSVI, "step_ratio", [*NOT_POSITIVE, 1.0, 1.5]),
    (DelayedLPSVI, "step_size", [value for value in NOT_POSITIVE if value is not None]),
    (DelayedLPSVI, "noise", NOT_POSITIVE),
    (DelayedLPSVI, "ridge", NOT_POSITIVE),
    (DelayedLPSVI, "sampler", ["exact", "", None, 0]),
    (DelayedLPSVI, "warm_start", ["epsiode", True, None]),
    (DelayedUCBVI, "bonus", [value for value in NEGATIVE if value is not None]),
    (DelayedUCBVI, "bonus_ratio", NEGATIVE),
    (DelayedUCBVI, "bonus_form", ["constantly", None, 1]),
    (DelayedUCBVI, "ridge", NOT_POSITIVE),
    *((algorithm, "ties", ["last", "", None, 0]) for algorithm in (DelayedPSVI, DelayedLPSVI, DelayedUCBVI)),
    (TabularUCBVI, "bonus_form", ["bernoulli", None]),
    (TabularUCBVI, "bonus_scale", NEGATIVE),
    (TabularUCBVI, "delta", [*NOT_POSITIVE, 1.0]),
    (TabularUCBVI, "episodes", NOT_COUNTS),
    (TabularUCBVI, "updating", ["lazily", None]),
    (TabularUCBVI, "growth", NOT_POSITIVE),
    (TabularUCBVI, "ties", ["last", None]),
    (MultiBatch, "base", [None, "psvi", MultiBatch(base=RandomPolicy())]),
    (MultiBatch, "growth", [0.99, -1, "2", None, float("nan")]),
    (MultiBatch, "drop_stragglers", [0, None, "yes"]),
    (RareSwitching, "base", [None, "psvi", MultiBatch(base=RandomPolicy())]),
    (RareSwitching, "growth", [1.0, -1, "2", float("nan")]),
    (RareSwitching, "every", [0, -1, 1.5, "2"]),
    (DelayedPSLB, "draws", NOT_COUNTS),
    (DelayedPSLB, "scale", NEGATIVE),
    (DelayedPSLB, "noise", NOT_POSITIVE),
    (DelayedPSLB, "ridge", NOT_POSITIVE),
    (DelayedPSLB, "sampler", ["langevin", None]),
    (DelayedPSLB, "steps", NOT_COUNTS),
    (DelayedPSLB, "step_ratio", [*NOT_POSITIVE, 1.0]),
    (DelayedPSLB, "ties", ["last", None]),
    (DelayedOFU, "norm_bound", NEGATIVE),
    (DelayedOFU, "noise", NOT_POSITIVE),
    (DelayedOFU, "delta", [*NOT_POSITIVE, 1.0]),
    (DelayedOFU, "ridge", NOT_POSITIVE),
    (DelayedOFU, "link", ["logit", None]),
    (DelayedOFU, "bonus_scale", NEGATIVE),
    (DelayedOFU, "ties", ["last", None]),
    (DelayedOPPO, "step_size", [value for value in NOT_POSITIVE if value is not None]),
    (DelayedDAPO, "step_size", [value for value in NOT_POSITIVE if value is not None]),
    (DelayedOPPO, "exploration", [value for value in NOT_POSITIVE if value is not None]),
    (DelayedDAPO, "exploration", [value for value in NOT_POSITIVE if value is not None]),
    *((algorithm, "episodes", NOT_COUNTS) for algorithm in (DelayedOPPO, DelayedDAPO)),
    *((algorithm, "mean_delay", NEGATIVE) for algorithm in (DelayedOPPO, DelayedDAPO)),
    *((algorithm, "confidence", NEGATIVE) for algorithm in (DelayedOPPO, DelayedDAPO)),
    *((algorithm, "delta", [*NOT_POSITIVE, 1.0]) for algorithm in (DelayedOPPO, DelayedDAPO)),
    (DelayedDAPO, "bonus_scale", NEGATIVE),
    *((algorithm, "window", NOT_COUNTS) for algorithm in (OTFLinUCB, OTFLinTS)),
    *((algorithm, "scale", NEGATIVE) for algorithm in (OTFLinUCB, OTFLinTS)),
    *((algorithm, "delta", [*NOT_POSITIVE, 1.0]) for algorithm in (OTFLinUCB, OTFLinTS)),
    *((algorithm, "ridge", NOT_POSITIVE) for algorithm in (OTFLinUCB, OTFLinTS)),
    (LearnByAge, "window", [-3, 1.0, "2", None, True]),
    (LearnByAge, "ages", NOT_COUNTS),
    (LearnByAge, "scale", NEGATIVE),
    (LearnByAge, "ridge", NOT_POSITIVE),
    (LearnByAge, "signals", [0, "yes", None]),
    *((algorithm, "base", [None, "psvi", Greedy]) for algorithm in (QPMD, BOLD)),
    (EpsilonGreedy, "epsilon", [*NEGATIVE, 1.01]),
    (EpsilonGreedy, "ridge", NOT_POSITIVE),
    (Greedy, "ridge", NOT_POSITIVE),
    (DelayedQLearning, "epsilon", [*NEGATIVE, 1.01]),
    (DelayedQLearning, "step_size", [*NOT_POSITIVE, 1.01]),
    (DelayedQLearning, "discount", [value for value in [*NEGATIVE, 1.01] if value is not None]),
    *((algorithm, "shared", [0, "yes"]) for algorithm in (Ablation, DelayedPSRL, DelayedQLearning)),
    *(
        (algorithm, "shared", [0, "yes", None])
        for algorithm in (DelayedPSVI, DelayedPHE, DelayedLPSVI, DelayedUCBVI, EpsilonGreedy, Greedy)
    ),
    (AutoPSVI, "ablation", [None, 0, "none", {"rows": 7}, Ablation]),
    *(
        (Ablation, name, [0, "yes", None])
        for name in ("optimistic", "weighted", "forgetting", "hurried", "capped", "timed")
    ),
    (Ablation, "ridge", [value for value in NOT_POSITIVE if value is not None]),
    *((Ablation, name, NEGATIVE) for name in ("residual", "hidden", "prior", "slab", "rarity")),
    (Ablation, "rows", NOT_COUNTS),
    *((DelayedPSRL, name, NOT_POSITIVE) for name in ("concentration", "reward_visits")),
    (DelayedPSRL, "noise", NEGATIVE),
    (DelayedPSRL, "reward_mean", [float("nan"), float("inf"), "1", None, True]),
]
CASES = [(algorithm, name, value) for algorithm, name, values in BAD for value in values]


@pytest.mark.parametrize(("algorithm", "name", "value"), CASES)
def test_a_bad_setting_is_named_with_its_value(
    algorithm: type[Settings] | type[Ablation], name: str, value: Any
) -> None:
    with pytest.raises((InvalidInputError, UnknownNameError)) as raised:
        algorithm(**({"base": DelayedPSVI()} if algorithm in (MultiBatch, RareSwitching) else {}) | {name: value})
    assert str(raised.value).startswith(f"{name} must be ")
    assert f"got {value!r}" in str(raised.value)


def test_every_setting_is_covered() -> None:
    covered = {(algorithm, name) for algorithm, name, _ in BAD}
    for algorithm in (*AGENTS.values(), Ablation):
        for field in fields(algorithm):
            assert (algorithm, field.name) in covered or algorithm is FixedPolicy


def test_a_number_too_large_for_a_float_is_refused_like_any_other() -> None:
    with pytest.raises(InvalidInputError, match=r"^ridge must be"):
        Greedy(ridge=10**400)


UNUSUAL: list[Settings] = [
    MultiBatch(base=DelayedUCBVI(bonus=0.5), growth=1.5, drop_stragglers=False),
    RareSwitching(base=DelayedPSVI(scale=3), growth=None, every=9),
    TabularUCBVI(bonus_form="bernstein", bonus_scale=0.01, delta=0.1, episodes=50, updating="lazy", growth=3.0),
    DelayedPSVI(draws=3, scale=0, noise=0.1, ridge=2, storage="float32"),
    VarianceWeightedPSVI(draws=3, scale=0, noise=0.1, ridge=2, shared=True, cap=False, ties="first"),
    DelayedPHE(draws=1, scale=0.5, noise=0.1, ridge=2, tolerance=1e-4, cap=False),
    DelayedLPSVI(
        draws=1,
        steps=7,
        temperature=0.02,
        step_ratio=0.25,
        step_size=0.01,
        noise=0.5,
        ridge=0.1,
        sampler="collapsed",
        warm_start="step",
    ),
    DelayedUCBVI(bonus=0.3, bonus_ratio=0.04, bonus_form="growing", ridge=3.0),
    DelayedPSLB(draws=3, scale=0, noise=0.1, ridge=2, sampler="collapsed", steps=7, step_ratio=0.25, ties="first"),
    DelayedOFU(norm_bound=3, noise=0.1, delta=0.2, ridge=2, link="logistic", bonus_scale=0, ties="first"),
    DelayedOPPO(step_size=0.1, exploration=0.2, episodes=7, mean_delay=3, confidence=0, delta=0.5),
    DelayedDAPO(step_size=0.1, mean_delay=2.5, confidence=0.01, bonus_scale=0),
    OTFLinUCB(window=7, scale=0, delta=0.2, ridge=2.0),
    OTFLinTS(window=3, scale=0.5, delta=0.1, ridge=0.5),
    LearnByAge(window=7, ages=3, scale=0.5, ridge=2.0),
    QPMD(base=OTFLinTS(window=3)),
    BOLD(base=QPMD(base=Greedy(ridge=2.0))),
    EpsilonGreedy(epsilon=1.0, ridge=0.2),
    Greedy(ridge=7.0),
    AutoPSVI(
        ablation=Ablation(
            shared=True,
            optimistic=False,
            ridge=2.0,
            residual=0.5,
            hidden=0.0,
            weighted=False,
            forgetting=False,
            prior=1.0,
            rows=7,
        )
    ),
    DelayedPSRL(shared=False),
    DelayedQLearning(epsilon=0.0, step_size=1.0, shared=True, discount=0.5),
    RandomPolicy(),
    FixedPolicy(actions=[[0, 1], [1, 1], [0, 0]]),
]


@pytest.mark.parametrize("settings", UNUSUAL, ids=lambda settings: settings.kind)
def test_plain_values_and_back(settings: Settings) -> None:
    plain = json.loads(json.dumps(settings.to_dict()))
    assert plain["algorithm"] == settings.kind
    again = agent_from_dict(plain)
    assert again == settings
    assert type(again) is type(settings)
    assert hash(again) == hash(settings)
    assert type(settings).from_dict(plain) == settings


def test_the_registry_holds_every_algorithm_under_its_kind() -> None:
    assert [algorithm.kind for algorithm in AGENTS.values()] == list(AGENTS)
    assert len(AGENTS) == len(set(AGENTS.values()))
    assert {type(settings) for settings in UNUSUAL} == set(AGENTS.values())


def test_the_package_exports_every_algorithm() -> None:
    for algorithm in AGENTS.values():
        assert getattr(belated.agents, algorithm.__name__) is algorithm
        assert algorithm.__name__ in belated.agents.__all__


def test_importing_the_package_imports_no_algorithm() -> None:
    program = (
        "import sys, types, importlib.util\n"
        "spec = importlib.util.find_spec('belated')\n"
        "package = types.ModuleType('belated'); package.__path__ = spec.submodule_search_locations\n"
        "sys.modules['belated'] = package  # without what `import belated` itself loads\n"
        "import belated.agents\n"
        "print('psvi' in belated.agents.AGENTS, 'belated.agents._psvi' in sys.modules)\n"
        "print(belated.agents.DelayedPSVI.kind)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "psvi"]


def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(InvalidInputError, match=r"greedy has no setting 'rigde'; its settings are: ridge"):
        agent_from_dict({"algorithm": "greedy", "rigde": 1.0})
    with pytest.raises(InvalidInputError, match=r"random has no setting 'x'; its settings are: none"):
        agent_from_dict({"algorithm": "random", "x": 1.0})
    with pytest.raises(InvalidInputError, match=r"greedy has no setting 'kind'; its settings are: ridge"):
        agent_from_dict({"algorithm": "greedy", "kind": "greedy"})
    with pytest.raises(UnknownNameError, match=r"algorithm must be one of .*got 'psvj'; did you mean 'psvi'"):
        agent_from_dict({"algorithm": "psvj"})
    for specification in ({}, {"ridge": 1.0}, "psvi", None):
        with pytest.raises(InvalidInputError, match="the specification must be a mapping with the field"):
            agent_from_dict(specification)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"ridge must be .*got -1"):
        agent_from_dict({"algorithm": "greedy", "ridge": -1})
