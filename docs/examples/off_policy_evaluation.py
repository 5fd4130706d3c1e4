"""Evaluate another policy from a log.

What would another policy have earned? The log of a model has the probability with which each action was chosen, which
is enough to estimate a policy before anybody plays it. The estimate has an interval if the log has enough of the
actions that the policy would take, and otherwise a reason. Here the truth is known, and drawn beside the estimates.
Intervals of 95 % miss it now and then.
"""

import matplotlib.pyplot as plt
import numpy as np

from belated.decisions import MemoryStore, Model, ModelSettings, always, evaluate, uniform

table = {"actions": ["red", "green", "blue"], "features": ["age"], "silence": {"kind": "unknown"}, "floor": 0.3}
model = Model("adverts", ModelSettings.from_table(table), MemoryStore())
rng = np.random.default_rng(0)


def chance(action, age):
    """Return how likely a click is."""
    return {"red": 0.3, "green": 0.2 + 0.4 * age, "blue": 0.6 - 0.4 * age}[action]


for _ in range(1500):
    age = float(rng.random())
    choice = model.decide({"age": age})
    model.feedback(choice.id, float(rng.random() < chance(choice.action, age)))


def by_age(context, actions):
    """Green for the old, blue for the young: the best that can be done."""
    return [float(action == ("green" if context["age"] > 0.5 else "blue")) for action in actions]


ages = np.linspace(0, 1, 1001)
policies = {"always red": always("red"), "any alike": uniform, "always blue": always("blue"), "by age": by_age}
names = list(model.settings.names)
plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for place, (name, policy) in enumerate(policies.items()):
    truth = np.mean([np.dot(policy({"age": age}, names), [chance(each, age) for each in names]) for age in ages])
    found = evaluate(model.log(), policy, model.settings)
    for shift, each in enumerate(found.estimates):
        reach = [[each.value - each.low], [each.high - each.value]]
        axes.errorbar(place + (shift - 1) / 5, each.value, reach, fmt="o", color=f"C{shift}")
    axes.hlines(truth, place - 0.4, place + 0.4, color="black")
    robust = found.estimates[-1]
    interval = robust.reason or f"[{robust.low:.2f}, {robust.high:.2f}]"
    print(f"{name:12} truth {truth:.2f}, doubly robust {robust.value:.2f} {interval}")
axes.set_xticks(range(len(policies)), list(policies))
axes.set(ylabel="clicks per decision", title="IPS, SNIPS and doubly robust estimates; black: the truth")
figure.savefig("off_policy_evaluation.png", dpi=150)
