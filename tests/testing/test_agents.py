"""The conformance suite: every algorithm passes it, and every way of breaking the contract is caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
import pytest

import belated
from belated.agents import AGENTS
from belated.testing import _agents as checks
from belated.types import Agent, Algorithm, Feedback, Problem, TablePolicy, TableProblem, check_batch

VARIANTS: dict[str, Algorithm] = {
    **{
        kind: algorithm()
        for kind, algorithm in AGENTS.items()
        if all(each.default is not MISSING for each in fields(algorithm))
    },
    "lpsvi-collapsed": belated.DelayedLPSVI(sampler="collapsed"),
    "lpsvi-preconditioned": belated.DelayedLPSVI(sampler="preconditioned", warm_start="step"),
    "lpsvi-cold": belated.DelayedLPSVI(warm_start="cold"),
    "ucbvi-growing": belated.DelayedUCBVI(bonus_form="growing"),
    "psvi-first": belated.DelayedPSVI(ties="first"),
    "psvi-shared": belated.DelayedPSVI(shared=True),
    "lpsvi-shared": belated.DelayedLPSVI(shared=True),
    "lpsvi-collapsed-shared": belated.DelayedLPSVI(sampler="collapsed", warm_start="step", shared=True),
    "lpsvi-preconditioned-shared": belated.DelayedLPSVI(sampler="preconditioned", shared=True),
    "ucbvi-shared": belated.DelayedUCBVI(bonus_form="growing", shared=True),
    "epsilon-greedy-shared": belated.EpsilonGreedy(shared=True),
    "greedy-shared": belated.Greedy(shared=True),
    "auto-psvi-shared": belated.AutoPSVI(ablation=belated.agents.Ablation(shared=True)),
    "psrl-shared": belated.DelayedPSRL(shared=True),
    "rare-switching-shared": belated.RareSwitching(base=belated.DelayedPSVI(shared=True), every=4),
    "multi-batch-shared": belated.MultiBatch(base=belated.DelayedUCBVI(shared=True)),
    "tabular-ucbvi-bernstein": belated.TabularUCBVI(bonus_form="bernstein", bonus_scale=0.003),
    "tabular-ucbvi-doubling": belated.TabularUCBVI(bonus_scale=0.003, updating="lazy"),
    "tabular-ucbvi-eager": belated.TabularUCBVI(bonus_scale=0.003, updating="lazy", growth=7.5),
    "tabular-ucbvi-tripling": belated.TabularUCBVI(
        bonus_form="bernstein", bonus_scale=0.003, updating="lazy", growth=0.5
    ),
    "q-learning-per-step": belated.DelayedQLearning(shared=False, discount=0.9, step_size=1.0),
    "pslb-plain": belated.DelayedPSLB(sampler="plain", steps=5),
    "pslb-collapsed": belated.DelayedPSLB(sampler="collapsed", steps=5),
    "pslb-preconditioned": belated.DelayedPSLB(sampler="preconditioned", steps=5),
    "ofu-narrow": belated.DelayedOFU(bonus_scale=0.2),
    "ofu-logistic": belated.DelayedOFU(link="logistic", bonus_scale=0.2),
    "otf-linucb-narrow": belated.OTFLinUCB(window=5, scale=0.3),
    "otf-lints-narrow": belated.OTFLinTS(window=5, scale=0.3),
    "oppo-fast": belated.DelayedOPPO(step_size=0.1),
    "dapo-fast": belated.DelayedDAPO(step_size=0.1),
    "rare-switching": belated.RareSwitching(base=belated.DelayedPSVI(), every=4),
    "qpm-d": belated.QPMD(base=belated.DelayedPSVI()),
    "qpm-d-growing": belated.QPMD(base=belated.DelayedUCBVI(bonus_form="growing")),
    "qpm-d-lazy": belated.QPMD(base=belated.TabularUCBVI(bonus_scale=0.01, updating="lazy")),
    "qpm-d-otf": belated.QPMD(base=belated.OTFLinTS(window=3, scale=0.3)),
    "qpm-d-random": belated.QPMD(base=belated.RandomPolicy()),
    "bold": belated.BOLD(base=belated.DelayedPSVI()),
    "bold-growing": belated.BOLD(base=belated.DelayedUCBVI(bonus_form="growing")),
    "bold-lazy": belated.BOLD(base=belated.TabularUCBVI(bonus_scale=0.01, updating="lazy")),
    "bold-random": belated.BOLD(base=belated.RandomPolicy()),
    "multi-batch": belated.MultiBatch(base=belated.DelayedPSVI()),
    "multi-batch-lpsvi": belated.MultiBatch(base=belated.DelayedLPSVI()),
    "multi-batch-collapsed": belated.MultiBatch(base=belated.DelayedLPSVI(sampler="collapsed", warm_start="step")),
    "multi-batch-ucbvi": belated.MultiBatch(base=belated.DelayedUCBVI(bonus_form="growing")),
    "multi-batch-greedy": belated.MultiBatch(base=belated.Greedy()),
    "multi-batch-all": belated.MultiBatch(base=belated.EpsilonGreedy(), drop_stragglers=False),
}


def test_every_algorithm_is_checked() -> None:
    checked = {type(algorithm) for algorithm in VARIANTS.values()}
    assert checked == set(AGENTS.values()) - {belated.FixedPolicy}  # whose table fits one problem only


@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("algorithm", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_algorithm_conforms(algorithm: Algorithm, check: checks.Check) -> None:
    check(algorithm)


@dataclass(frozen=True)
class Broken:
    """An algorithm whose agents are sound but for what `spoil` does to them."""

    spoil: Callable[[Any, Problem], Agent]

    def start(self, problem: Problem) -> Agent:
        return self.spoil(belated.DelayedPSVI().start(problem), problem)


class Around:
    """Passes everything on to a sound agent; subclasses break one thing."""

    def __init__(self, inner: Any, problem: Problem) -> None:
        self.inner, self.problem = inner, problem

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        policy: TablePolicy = self.inner.plan(rng)
        return policy

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.inner.learn(batch)


class PlansOutOfRange(Around):
    def plan(self, rng: np.random.Generator) -> TablePolicy:
        return TablePolicy(super().plan(rng).actions + self.problem.actions)


class OwnRandomness(Around):
    def plan(self, rng: np.random.Generator) -> TablePolicy:
        return super().plan(np.random.default_rng())


class SharedMemory(Around):
    shared: list[Feedback] = []  # noqa: RUF012 - shared on purpose: it is the mistake

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.shared.extend(batch)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        assert isinstance(self.problem, TableProblem)
        table = np.full((self.problem.horizon, self.problem.states), min(len(self.shared), 1))
        return TablePolicy(table)


class CountsCalls(Around):
    calls = 0

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.calls += 1
        super().learn(batch)

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        return TablePolicy((super().plan(rng).actions + self.calls) % self.problem.actions)


class LearnsBeforeItLooks(Around):
    def learn(self, batch: Sequence[Feedback]) -> None:
        for feedback in batch:
            self.inner.learn([feedback])


class SwallowsErrors(Around):
    def learn(self, batch: Sequence[Feedback]) -> None:
        try:
            self.inner.learn(batch)
        except ValueError:
            return


@pytest.mark.parametrize(
    ("check", "mistake", "message"),
    [
        (checks.acts_before_any_feedback, PlansOutOfRange, "actions must be below"),
        (checks.same_seed_same_actions, OwnRandomness, "must come from plan's rng"),
        (checks.agents_share_nothing, SharedMemory, "because another one learned"),
        (checks.order_and_batching_do_not_matter, CountsCalls, "depend on the order of feedback"),
        (checks.zero_delay_is_undelayed, CountsCalls, "zero delay differs from no delay"),
        (checks.late_feedback_changes_nothing_before_it_arrives, OwnRandomness, "plans depend on more than feedback"),
        (checks.bad_feedback_changes_nothing, LearnsBeforeItLooks, "changed the plans"),
        (checks.bad_feedback_changes_nothing, SwallowsErrors, "learn accepted"),
    ],
)
def test_every_mistake_is_caught(check: checks.Check, mistake: type[Around], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(Broken(mistake))


def test_an_order_that_matters_has_to_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    check = checks.order_and_batching_do_not_matter
    check(belated.DelayedQLearning())
    monkeypatch.setattr(belated.DelayedQLearning, "order_matters", False)
    with pytest.raises(AssertionError, match="shuffled in threes"):
        check(belated.DelayedQLearning())
    monkeypatch.setattr(Broken, "order_matters", True, raising=False)
    with pytest.raises(AssertionError, match="depend on the order of feedback: one by one"):
        check(Broken(CountsCalls))  # batches must not matter even so


def test_a_forgetful_save_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = belated.agents.Learner.restore
    monkeypatch.setattr(
        belated.agents.Learner,
        "restore",
        lambda self, memory: real(self, {**memory, "factor": memory["factor"] * 2}),
    )
    with pytest.raises(AssertionError, match=r"memory\['factor'\] is not what was saved"):
        checks.survives_a_round_trip(belated.DelayedPSVI())


def test_a_save_without_the_stream_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    other = np.random.default_rng(0)
    monkeypatch.setattr(checks, "load_agent", lambda path, classes: (belated.load_agent(path, classes).agent, other))
    with pytest.raises(AssertionError, match="goes on differently"):
        checks.survives_a_round_trip(belated.DelayedPSVI())


def test_settings_that_forget_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(belated.Greedy, "from_dict", classmethod(lambda cls, values: cls()))
    with pytest.raises(AssertionError, match="settings change on the way through JSON"):
        checks.settings_survive_a_round_trip(belated.Greedy(ridge=2.0))


def test_loops_that_differ_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(belated.agents.Learner, "learn", lambda self, batch: None)
    with pytest.raises(AssertionError, match="the compiled loop and the Python loop give different rows"):
        checks.both_loops_give_the_same_rows(belated.DelayedPSVI())


@pytest.mark.parametrize("kind", [kind for kind in VARIANTS if kind in AGENTS])
def test_a_number_of_an_episode_beyond_64_bits_is_refused_before_anything_is_learned(kind: str) -> None:
    algorithm = VARIANTS[kind]
    world = belated.RandomLinearMDP(states=1, actions=2, dimension=2, horizon=1)
    agent: Any = algorithm.start(world.problem)
    late = world.rollout(TablePolicy(np.zeros((1, 1), np.int64)), np.random.default_rng(0))
    before = {name: values.copy() for name, values in agent.memory().items()}
    for number in (2**63, 10**400, -1, 1.0, "1"):
        with pytest.raises(belated.InvalidInputError, match=r"^feedback.episode must be an integer >= 0 and <= "):
            agent.learn([Feedback(0, late), Feedback(number, late)])  # type: ignore[arg-type]
        for name, values in agent.memory().items():
            np.testing.assert_array_equal(values, before[name])
    agent.learn([Feedback(2**63 - 1, late)])


def test_check_agent_runs_them_all() -> None:
    checks.check_agent(Broken(Around))
    with pytest.raises(AssertionError):
        checks.check_agent(Broken(PlansOutOfRange))


@dataclass(frozen=True)
class OfOnesOwn:
    """Settings that are a plain dataclass, without to_dict."""

    action: int = 0

    def start(self, problem: Problem) -> Agent:
        settings = self

        class Agent:
            def plan(self, rng: np.random.Generator) -> Any:
                return settings

            def learn(self, batch: Sequence[Feedback]) -> None:
                check_batch(batch, problem)

        return Agent()

    def act(self, step: int, state: Any) -> int:
        return self.action


def test_a_plain_dataclass_is_an_algorithm() -> None:
    checks.check_agent(OfOnesOwn())


class HasNothing(OfOnesOwn):
    def start(self, problem: Problem) -> Any:
        return object()


class PlansNothing(OfOnesOwn):
    act = None  # type: ignore[assignment]


class ActsInWords(OfOnesOwn):
    def act(self, step: int, state: Any) -> Any:
        return "left"


class Fails(OfOnesOwn):
    def act(self, step: int, state: Any) -> int:
        raise KeyError(step)


@pytest.mark.parametrize(
    "algorithm", [HasNothing(), PlansNothing(), ActsInWords(), Fails(), OfOnesOwn(99), object(), 3]
)
def test_what_is_none_fails_with_a_sentence(algorithm: Any) -> None:
    with pytest.raises(AssertionError, match=r"\w+ \w+ \w+"):
        checks.check_agent(algorithm)


class SaysOtherwise:
    """A policy that takes the first action, and says that it takes any of two."""

    def __init__(self, actions: int) -> None:
        self.chances = np.zeros(actions)
        self.chances[:2] = 0.5

    def act(self, step: int, state: Any) -> int:
        return 0

    def distribution(self, step: int, state: Any) -> Any:
        return self.chances


class SaysSomethingElse(Around):
    def plan(self, rng: np.random.Generator) -> Any:
        return SaysOtherwise(self.problem.actions)


class SaysTooMuch(Around):
    def plan(self, rng: np.random.Generator) -> Any:
        policy = SaysOtherwise(self.problem.actions)
        policy.chances = policy.chances + 0.25
        return policy


@pytest.mark.parametrize(
    ("spoil", "message"), [(SaysSomethingElse, "are drawn as often as"), (SaysTooMuch, "that sum to one")]
)
def test_a_policy_that_says_what_it_does_not_do_is_caught(spoil: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        checks.actions_are_drawn_from_distributions(Broken(spoil))
