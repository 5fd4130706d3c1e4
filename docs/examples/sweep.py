"""A sweep of three settings by twenty seeds.

How wide should posterior sampling draw? Too narrow does not explore, too wide does not stop. The search is a file, its
seeds are none of the seeds that an experiment will report, and a search that is interrupted goes on where it stopped.
`python sweep.py ray` plays it on a Ray cluster, to the same numbers; `belated tune sweep.toml` does all of this, too.
"""

import json
import sys

import matplotlib.pyplot as plt

from belated.runner.sweeps import load_search
from belated.runner.tuning import tune

backend = sys.argv[1] if len(sys.argv) > 1 else None
outcome = tune(load_search("sweep.toml"), folder="tuning/rows", backend=backend, progress=False)
outcome.save("tuning/sweep")  # winners.json, which an experiment can include, and search.csv

plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for row in outcome.table.iter_rows(named=True):
    scale, middle = json.loads(row["settings"])["scale"], row["regret"]
    reach = [[middle - row["regret_low"]], [row["regret_high"] - middle]]
    axes.errorbar(scale, middle, yerr=reach, fmt="o", capsize=4)
    print(f"scale {scale:4}: regret {middle:4.0f} [{row['regret_low']:.0f}, {row['regret_high']:.0f}]", end="")
    print(f" over {row['seeds']} seeds{', the winner' if row['kept'] else ''}")
axes.set(xscale="log", yscale="log", xlabel="scale", ylabel="regret after 300 episodes", title="20 seeds each")
figure.savefig("sweep.png")
