"""A sweep of three settings by twenty seeds.

How wide should posterior draws be? Narrow draws do not explore, wide ones never stop. The search is a file, and it
plays on seeds that no experiment will report. `python sweep.py ray` plays it on a Ray cluster, with the same numbers,
and `belated tune sweep.toml` does all of this from the command line.
"""

import json
import sys

import matplotlib.pyplot as plt

from belated.runner import load_search, tune

backend = "ray" if "ray" in sys.argv else None
outcome = tune(load_search("sweep.toml"), folder="tuning/rows", backend=backend, progress=False)
outcome.save("tuning/sweep")  # winners.json, which an experiment can include, and search.csv

plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for row in outcome.table.iter_rows(named=True):
    scale, middle = json.loads(row["settings"])["scale"], row["regret"]
    reach = [[middle - row["regret_low"]], [row["regret_high"] - middle]]
    axes.errorbar(str(scale), middle, yerr=reach, fmt="o", capsize=4)
    print(f"scale {scale:4}: regret {middle:4.0f} [{row['regret_low']:.0f}, {row['regret_high']:.0f}]", end="")
    print(f" over {row['seeds']} seeds{', the winner' if row['kept'] else ''}")
axes.set(xlabel="scale", ylabel="regret after 300 episodes", ylim=(0, None))
figure.savefig("sweep.png", dpi=150)
