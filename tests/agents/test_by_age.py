"""LearnByAge against a transcription that keeps every play, by hand, and reduced to Delayed-PSLB."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels.by_age import Chain, link, new_chain
from belated._kernels.streams import stream
from belated.agents import DelayedPSLB, LearnByAge, OTFLinTS, agent_from_dict
from belated.agents._base import Learner
from belated.delays import Constant, DelayByReward, Geometric, Lossy, Poisson
from belated.environments import Bandit, LinearBandit
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.runner._trials import ReportQueue
from belated.types import Feedback, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]

SILENT = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(6))
CONTEXTS = LinearBandit(actions=4, dimension=3, sets="random", contexts=3, reward="conversion", seed=2)


class Naive:
    """The algorithm as it is written: every play and report is kept, every covariance made again."""

    def __init__(self, problem: TableProblem, settings: LearnByAge) -> None:
        self.features, self.settings, self.cuts = problem.features, settings, settings.cuts()
        self.prior = settings.ridge * float(np.mean(np.linalg.norm(problem.features, axis=-1) ** 2))
        self.ridges = np.full(self.cuts.size, self.prior)
        self.plays: list[Floats] = []
        self.reports: list[tuple[int, int, bool, float]] = []

    def changes(self) -> Floats:
        """Return what came of each play at each age, shape (plays, B, k); nan where the play is not older than it."""
        found = np.zeros((len(self.plays), self.cuts.size, 1 + self.settings.signals))
        for play, delay, is_signal, amount in self.reports:
            if delay <= self.cuts[-1]:
                found[play, np.searchsorted(self.cuts, delay), int(is_signal)] += amount
        age = len(self.plays) - 1 - np.arange(len(self.plays))
        found[age[:, np.newaxis] < self.cuts] = np.nan
        return found

    def plan(self, state: int, rng: np.random.Generator) -> int:
        d, came, ridge, scale = self.features.shape[2], self.changes(), self.settings.ridge, self.settings.scale
        k = came.shape[2]
        known = [~np.isnan(came[:, b, 0]) for b in range(self.cuts.size)]
        squares = [float((came[old, b, 0] ** 2).mean()) for b, old in enumerate(known) if old.any()]
        usual = float(np.mean(squares)) if squares else 0.0
        gains, left = np.eye(k)[0], {}
        for b in reversed(range(self.cuts.size)):
            old = known[b]
            if old.any():
                now, before = came[old, b], came[old, :b].sum(axis=1)
                now, before, slopes = now - now.mean(axis=0), before - before.mean(axis=0), np.zeros((k, k))
                varied = np.flatnonzero(before.std(axis=0) > 1e-9)
                if varied.size:
                    s = before[:, varied]
                    slopes[varied] = np.linalg.solve(s.T @ s * (1 + np.eye(varied.size) * ridge / len(s)), s.T @ now)
                left[b] = (now - before @ slopes) @ gains
                gains = gains + slopes @ gains
        total = np.zeros(d)
        for b in range(self.cuts.size if usual > 0 else 0):
            x, y, n = np.zeros((0, d)), np.zeros(0), int(known[b].sum())
            variance = 0.01 * usual
            if n:
                x, y = np.array(self.plays)[known[b]], left[b]
                variance = ((usual + (came[known[b], b, 0] ** 2).sum()) / (1 + n) + (y**2).sum()) / (1 + n)
            if n in {2**i for i in range(20)}:
                self.ridges[b] = self.evident(x, y / np.sqrt(variance), self.ridges[b])
            V = self.ridges[b] * np.eye(d) + x.T @ x
            root = np.linalg.inv(np.linalg.cholesky(V)).T  # the root of V⁻¹ that the library draws with
            total += np.linalg.solve(V, x.T @ y) + scale * np.sqrt(variance) * root @ rng.standard_normal(d)
        index = self.features[state] @ total
        best = np.flatnonzero(index >= index.max() - 1e-12 * max(1.0, abs(index.max())))
        choice = int(best[int(rng.random() * best.size)]) if best.size > 1 else int(best[0])
        self.plays.append(self.features[state, choice])
        return choice

    def evident(self, x: Floats, y: Floats, ridge: float) -> float:
        """Return λ after one step of MacKay's, by singular values: γ = Σ s²/(s² + λ)."""
        rows, values, turn = np.linalg.svd(x, full_matrices=False)
        weights = turn.T @ (values / (values**2 + ridge) * (rows.T @ y))
        determined = float((values**2 / (values**2 + ridge)).sum())
        return float((1.0 + determined) / (1.0 / self.prior + weights @ weights))


def played(
    world: Bandit, agent: Learner, rounds: int, seed: int = 3, signals: bool = False
) -> Iterator[tuple[int, int, list[Feedback]]]:
    """Play rounds with several reports each; yield context, choice and what had arrived before, after each plan."""
    queue, rng, chance = ReportQueue(), stream(seed, "agent"), np.random.default_rng(seed)
    for k in range(rounds):
        batch = [Feedback(*each) for each in queue.arrived(k)]
        agent.learn(batch)
        state = int(chance.integers(world.states))
        action = agent.plan_from(rng, state).act(0, state)
        yield state, action, batch
        mean = float(world.rewards[0, state, action])
        for i in range(int(chance.integers(3))):  # none, one or two reports, which may take back what came before
            amount = float(chance.choice([1.0, -0.5, 0.25])) if chance.random() < mean else 0.5
            part = "signal" if signals and i == 0 else "rewards"
            late = Trajectory(np.array([state, 0]), np.array([action]), np.array([amount]), False, 0, part)
            queue.add(k, int(chance.integers(25)), late)


@pytest.mark.parametrize(
    "settings",
    [
        LearnByAge(window=20, ages=5),
        LearnByAge(window=20, ages=4, signals=True, ridge=0.5),
        LearnByAge(window=12, ages=1, ridge=2.0, scale=0.5),
    ],
)
def test_it_plays_what_the_transcription_plays(settings: LearnByAge) -> None:
    contexts = np.random.default_rng(0).normal(size=(3, 4, 3))
    means = np.random.default_rng(1).random((3, 4))
    world = Bandit(contexts, means, noise=1.0)  # rewards of any size are accepted
    agent, naive, rng = settings.start(world.problem), Naive(world.problem, settings), stream(3, "agent")
    for k, (state, action, batch) in enumerate(played(world, agent, 80, signals=settings.signals)):
        for late in batch:
            told = late.trajectory
            naive.reports.append((late.episode, k - 1 - late.episode, told.part == "signal", float(told.rewards[0])))
        assert action == naive.plan(state, rng)


def test_the_cuts_are_squares_and_no_age_is_empty() -> None:
    assert LearnByAge(window=64, ages=8).cuts().tolist() == [1, 4, 9, 16, 25, 36, 49, 64]
    assert LearnByAge(window=2, ages=8).cuts().tolist() == [0, 1, 2]
    assert LearnByAge(window=9, ages=1).cuts().tolist() == [9]
    assert LearnByAge(window=0).cuts().tolist() == [0]


def test_one_age_learns_silence_as_if_all_were_told_when_the_window_is_over() -> None:
    shop = LinearBandit(actions=5, dimension=3, reward="conversion", seed=1)
    settings = LearnByAge(window=30, ages=1)
    within = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Poisson(8))
    silent = simulate(shop, settings, within, episodes=300, seed=5)
    told = simulate(shop, settings, Constant(30), episodes=300, seed=5)
    assert (silent["delay"].drop_nulls() <= 30).all()
    assert silent["regret"].equals(told["regret"])


@pytest.mark.parametrize("window", [0, 40])
def test_without_delay_it_draws_what_delayed_pslb_draws(window: int) -> None:
    """The prior mean is that of all plays, so that Delayed-PSLB is told the rewards less their mean, once."""
    shop = LinearBandit(actions=5, dimension=3, sets="random", contexts=4, reward="conversion", seed=1)
    settings = LearnByAge(window=window, ages=1)
    agent, rng, dynamics = settings.start(shop.problem), stream(1, "agent"), stream(1, "environment")
    rounds: list[Feedback] = []
    for k in range(60):
        agent.learn(rounds[-1:])
        state = shop.first_state(dynamics)
        rounds.append(Feedback(k, shop.rollout(agent.plan_from(rng, state), dynamics, start=state)))
    agent.learn(rounds[-1:])
    known = rounds[: 60 - settings.cuts()[0]]
    rewards = np.array([each.trajectory.rewards[0] for each in known])
    count, squares = len(rewards), float((rewards**2).sum())  # the noise is that of one more play of the usual square
    usual = squares / count
    noise = float(np.sqrt(((usual + squares) / (1 + count) + count * rewards.var()) / (1 + count)))
    problem = TableProblem(shop.features, 1, reward_range=(-1.0, 1.0))
    ridge = float(agent.record.learned.ridges[0])
    assert ridge != 1.0
    twin = DelayedPSLB(draws=1, noise=noise, ridge=ridge * noise**-2, scale=1.0).start(problem)
    for each in known:
        late = each.trajectory
        less = Trajectory(late.states, late.actions, late.rewards - rewards.mean())
        twin.learn([Feedback(each.episode, less)])
    for seed in range(20):
        copy = settings.start(shop.problem)
        copy.restore(agent.memory())
        state = seed % shop.states
        assert copy.plan_from(stream(seed, "agent"), state).act(0, state) == twin.plan_from(
            stream(seed, "agent"), state
        ).act(0, state)


def test_by_hand() -> None:
    """Two arms, ages 1 and 4, seven rounds: those of 0..4 are then older than 1, those of 0 and 1 older than 4."""
    world = Bandit(np.eye(2)[np.newaxis], [[0.5, 0.5]], bernoulli=True)
    agent, rng = LearnByAge(window=4, ages=2).start(world.problem), np.random.default_rng(0)
    chosen = list[int]()

    def tell(episode: int, amount: float) -> None:
        played = np.array([chosen[episode]])
        agent.learn([Feedback(episode, Trajectory(np.array([0, 0]), played, np.array([amount]), part="rewards"))])

    for k in range(7):
        if k == 2:
            tell(0, 1.0)  # with delay 1, at the first age
        if k == 5:
            tell(0, 0.5)  # the same round, with delay 4, at the second
            tell(2, 1.0)  # with delay 2, at the second; it is not old enough to count
        chosen.append(agent.plan(rng).act(0, 0))
    learned = agent.record.learned
    assert learned.plays.tolist() == [5, 2]
    assert learned.sums.tolist() == [[0.0, 1.0], [1.0, 0.5]]  # what had come before, and what came
    assert learned.products.tolist() == [[[0.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 0.25]]]
    counts = [chosen[:5].count(arm) for arm in (0, 1)]
    assert learned.features[0].tolist() == counts
    precision = np.diag(learned.ridges[0] + np.array(counts))
    np.testing.assert_allclose(learned.factor[0].T @ learned.factor[0], precision, atol=1e-12)


def test_what_was_told_as_a_whole_is_not_learned_twice() -> None:
    shop = LinearBandit(actions=3, dimension=2, reward="conversion")
    for algorithm in (LearnByAge(window=5), OTFLinTS(window=5)):
        agent, rng = algorithm.start(shop.problem), np.random.default_rng(0)
        action = agent.plan(rng).act(0, 0)
        whole = Trajectory(np.array([0, 0]), np.array([action]), np.array([1.0]))
        agent.learn([Feedback(0, whole)])
        with pytest.raises(InvalidInputError, match="must be new: episode 0"):
            agent.learn([Feedback(0, whole)])
        with pytest.raises(InvalidInputError, match="part"):
            agent.learn([Feedback(0, Trajectory(whole.states, whole.actions, whole.rewards, part="states"))])


def test_what_comes_after_the_window_or_of_rounds_it_did_not_plan_is_not_learned() -> None:
    shop = LinearBandit(actions=3, dimension=2, reward="conversion")
    agent, rng = LearnByAge(window=3, ages=2).start(shop.problem), np.random.default_rng(0)
    actions = [agent.plan(rng).act(0, 0) for _ in range(5)]
    before = {name: np.array(values) for name, values in agent.memory().items() if name != "heard"}
    late = Trajectory(np.array([0, 0]), np.array([actions[0]]), np.array([1.0]))
    agent.learn([Feedback(0, late), Feedback(99, late)])
    assert all(np.array_equal(agent.memory()[name], values) for name, values in before.items())


def linked(before: Floats, now: Floats, ridge: float = 0.0) -> Chain:
    """Return the chain of the plays, with what had come before each age and what came; shape (plays, B, k)."""
    both = np.concatenate([before, now], axis=2)
    chain = new_chain(now.shape[1], now.shape[2])
    covariances = np.array([np.cov(both[:, b].T, ddof=0) for b in range(now.shape[1])])
    link(chain, np.full(now.shape[1], float(len(now))), covariances, ridge)
    return chain


def test_what_is_left_adds_up_to_the_reward() -> None:
    """R is Σg_b(c_b − Δ_bs), play by play: nothing of the reward is lost by predicting from what came before."""
    rng = np.random.default_rng(0)
    came = rng.integers(-1, 3, size=(50, 4, 2)) * rng.random((50, 4, 2))
    before = came.cumsum(axis=1) - came
    for ridge in (0.0, 7.0):
        chain = linked(before, came, ridge)
        left = sum(came[:, b] @ chain.gains[b] - before[:, b] @ chain.slopes[b] @ chain.gains[b] for b in range(4))
        np.testing.assert_allclose(left, came.sum(axis=1)[:, 0])
    exact = linked(before, came)
    signalled = before[:, 3] - before[:, 3].mean(axis=0)
    slopes = np.linalg.lstsq(signalled, came[:, 3], rcond=None)[0]
    np.testing.assert_allclose(exact.slopes[3], slopes, rtol=1e-9)
    assert exact.variances[3] == pytest.approx(float(np.var((came[:, 3] - before[:, 3] @ slopes)[:, 0])))


def test_an_event_that_excludes_others_makes_earlier_ones_worth_less() -> None:
    """Of single events of probability p₁ and p₂ the slope is −p₂/(1 − p₁), the hazard: the product of survival."""
    came = np.zeros((1000, 2, 1))
    came[:300, 0], came[300:650, 1] = 1.0, 1.0
    chain = linked(came.cumsum(axis=1) - came, came)
    assert chain.slopes[1, 0, 0] == pytest.approx(-0.35 / 0.7)
    assert chain.gains[:, 0].tolist() == pytest.approx([0.5, 1.0])
    assert chain.variances.tolist() == pytest.approx([0.25 * 0.3 * 0.7, 0.35 * 0.65 - 0.105**2 / 0.21])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"window": -1}, "window"),
        ({"ages": 0}, "ages"),
        ({"scale": -1.0}, "scale"),
        ({"ridge": 0.0}, "ridge"),
        ({"window": 2.5}, "window"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        LearnByAge(**settings)  # type: ignore[arg-type]


def test_its_plain_values_are_read_back() -> None:
    assert agent_from_dict(LearnByAge(window=7, ages=3).to_dict()) == LearnByAge(window=7, ages=3)


def test_the_context_must_be_told_where_there_are_several() -> None:
    with pytest.raises(InvalidInputError, match="plan_from"):
        LearnByAge().start(CONTEXTS.problem).plan(np.random.default_rng(0))


def test_a_damaged_memory_is_refused() -> None:
    agent = LearnByAge(window=5, ages=2).start(CONTEXTS.problem)
    for name, value in (("pairs", 12), ("plays", 3), ("planned", -1), ("ridges", 0)):
        memory = {key: np.array(values) for key, values in agent.memory().items()}
        memory[name][0] = value
        with pytest.raises(InvalidInputError, match=name):
            agent.restore(memory)


def test_the_guess_that_actions_are_alike_is_worth_more_where_they_are() -> None:
    """Of 40 features that say nothing, λ grows to about one play a weight; where one arm is far better, it shrinks."""
    rng = np.random.default_rng(0)
    useless = Bandit(rng.normal(size=(50, 2, 40)), np.full((50, 2), 0.5), noise=1.0)
    clear = Bandit(np.eye(2)[np.newaxis], [[0.0, 1.0]], noise=0.01)
    found = []
    for world in (useless, clear):
        agent = LearnByAge(window=0, ages=1).start(world.problem)
        play, dynamics = stream(1, "agent"), stream(1, "environment")
        for k in range(514):
            state = world.first_state(dynamics)
            agent.learn([Feedback(k, world.rollout(agent.plan_from(play, state), dynamics, start=state))])
        found.append(float(agent.record.learned.ridges[0] / agent.record.prior))
    assert found[0] > 10.0
    assert found[1] < 1.0


def test_neither_the_scale_of_features_nor_that_of_rewards_matters() -> None:
    features = np.random.default_rng(0).normal(size=(3, 4, 3))
    means = np.random.default_rng(1).random((3, 4))
    chosen = []
    for size in (1.0, 8.0):
        world = Bandit(size * features, means, noise=1.0)
        agent = LearnByAge(window=20, ages=5).start(world.problem)
        chosen.append([action for _, action, _ in played(world, agent, 80)])
    assert chosen[0] == chosen[1]
