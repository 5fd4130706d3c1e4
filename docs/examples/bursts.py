"""An experiment in a file, killed and resumed.

Your own agent plays beside the library's, under delays that come in bursts. The command is killed in the middle,
as by a power cut, and given again: finished runs are kept, and the rest is played.
"""

import subprocess
import sys
import time
from pathlib import Path

from belated import Results

folder = Path("results", "bursts")
command = [sys.executable, "-m", "belated", *["run", "bursts.toml", "--backend", "threads", "--jobs", "1", "--quiet"]]


def finished():
    return {file: file.stat().st_mtime_ns for file in folder.rglob("seed-*.parquet")}


first = subprocess.Popen(command)
while len(finished()) < 5 and first.poll() is None:
    time.sleep(0.01)
first.kill()
first.wait()
before = finished()
print("killed with some runs finished and some not:", 5 <= len(before) < 30)

subprocess.run(command, check=True)
after = finished()
print("runs when it has ended:", len(after))
print("those that had finished were left alone:", all(after[file] == stamp for file, stamp in before.items()))

results = Results.read(folder)
results.plot_regret(log="xy").figure.savefig("bursts.png", dpi=150)
for row in results.summary().iter_rows(named=True):
    print(f"{row['agent']:16} regret {row['regret']:5.0f} [{row['regret_low']:.0f}, {row['regret_high']:.0f}]")
