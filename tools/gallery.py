"""Run the examples of docs/examples and write the gallery: its page, their output, and their images.

    python tools/gallery.py              all of them
    python tools/gallery.py sweep bursts only these, and the page

A test runs them all and compares their output with the page, and the page with the programs: it is never edited by
hand.
"""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES, PICTURES, PAGE = DOCS / "examples", DOCS / "pictures" / "gallery", DOCS / "examples" / "index.md"

#: In the order of the page.
NAMES = (
    "first_regret_curve",
    "what_delay_costs",
    "heavy_tails",
    "own_agent",
    "own_environment",
    "own_delay_distribution",
    "cartpole",
    "sweep",
    "bursts",
    "resume",
    "compare_on_tasks",
    "table_cell",
    "decision_service",
    "off_policy_evaluation",
)
COLUMNS, COLOURS = 3, 64
HEAD = """# Gallery

Short programs to copy from, each with its output and picture. They are in `docs/examples` and run unchanged, in
seconds; the first run takes longer, because the library compiles. Below each is a link to the same program as a
notebook; `python tools/notebooks.py` writes them all. All need `pip install 'belated[plots]'`, some also the extra
`gym`, or `service` and `client`. Numbers may differ a little on
[another kind of processor](../reference/environment.md#the-same-bits-on-every-processor). One more program,
`late_dqn.py`, feeds [an unmodified DQN](../howto/gymnasium.md#a-learner-of-another-library) of Stable-Baselines3.
"""


def parts(name: str) -> tuple[str, str, str]:
    """Return the title and description of a program, from its docstring, and the rest of its text."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    module = ast.parse(text)
    title, _, about = (ast.get_docstring(module) or "").partition("\n\n")
    return title.rstrip("."), about, "\n".join(text.splitlines()[module.body[0].end_lineno :]).strip()


def overview() -> str:
    """Return a table of all pictures, each a link to its program."""
    cells = []
    for name in NAMES:
        title = parts(name)[0]
        anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        cells.append(f"[![{title}](../pictures/gallery/{name}.png)<br>{title}](#{anchor})")
    cells += [""] * (-len(cells) % COLUMNS)
    rows = [cells[i : i + COLUMNS] for i in range(0, len(cells), COLUMNS)]
    return "\n".join(["| " * COLUMNS + "|", "|---" * COLUMNS + "|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def section(name: str, told: str) -> str:
    """Return the section of one program, which prints `told`."""
    title, about, code = parts(name)
    shown = [f"## {title}\n", f"{about}\n", f"![{title}](../pictures/gallery/{name}.png)\n"]
    shown.append(f'```python title="{name}.py"\n{code}\n```\n')
    file = EXAMPLES / f"{name}.toml"
    if file.exists():
        shown.append(f'```toml title="{file.name}"\n{file.read_text(encoding="utf-8").strip()}\n```\n')
    return "\n".join([*shown, f"It prints:\n\n```text\n{told.rstrip()}\n```\n", f"[As a notebook]({name}.ipynb)\n"])


def page(told: dict[str, str]) -> str:
    """Return the whole page, given the output of each program."""
    return "\n".join([HEAD, overview(), *(section(name, told[name]) for name in NAMES)])


def printed() -> dict[str, str]:
    """Return the output of each program according to the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r'title="(\w+)\.py".*?```text\n(.*?)```', text, flags=re.DOTALL)
    return dict.fromkeys(NAMES, "") | dict(found)


def keep(picture: Path) -> None:
    """Save an image with few colours, to make it small."""
    few = Image.open(picture).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    content = io.BytesIO()
    few.save(content, format="png", optimize=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / picture.name).write_bytes(content.getvalue())


def carry_out(name: str) -> str:
    """Run a program in a copy of its folder, save its image, and return its output."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
        done = subprocess.run(
            [sys.executable, f"{name}.py"], cwd=folder, stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8"
        )
        keep(Path(folder) / f"{name}.png")
    return done.stdout


if __name__ == "__main__":
    told = printed()
    for name in sys.argv[1:] or NAMES:
        told[name] = carry_out(name)
        print(f"ran {name}")
    PAGE.write_text(page(told), encoding="utf-8")
    print(f"wrote {PAGE}")
