"""Write the programs of the gallery as notebooks, which the site offers for download: docs/examples/*.ipynb.

    python tools/notebooks.py

A notebook has the code of the program in cells, and the files that it reads. Nothing is run here; a slow test runs all.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
from nbformat import v4

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def cells(code: str) -> list[str]:
    """Split the statements of a program into cells, at empty lines and at functions and classes.

    >>> cells("import sys\\n\\nx = 1\\ny = 2\\n\\n\\ndef f():\\n    a = 1\\n\\n    return a\\n")
    ['import sys', 'x = 1\\ny = 2', 'def f():\\n    a = 1\\n\\n    return a']
    """
    lines, body = code.splitlines(), ast.parse(code).body
    starts = [min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1 for node in body]
    cuts = [start for start in starts if start == 0 or not lines[start - 1].strip()]
    imports = [i for i, node in enumerate(body) if isinstance(node, ast.Import | ast.ImportFrom)]
    first = starts[imports[-1] + 1] if imports and imports[-1] + 1 < len(body) else 0  # all imports in one cell
    cuts = [0, *(cut for cut in cuts if cut >= max(first, 1))]
    return ["\n".join(lines[a:b]).strip("\n") for a, b in pairwise([*cuts, len(lines)]) if "".join(lines[a:b]).strip()]


def notebook(program: Path) -> Any:
    """Return a program as a notebook: its description, its files, then its code."""
    text = program.read_text(encoding="utf-8")
    module = ast.parse(text)
    title, _, about = (ast.get_docstring(module) or "").partition("\n\n")
    code = "\n".join(text.splitlines()[module.body[0].end_lineno :])
    files = [
        f"%%writefile {file.name}\n{file.read_text(encoding='utf-8').strip()}"
        for file in program.parent.glob(f"{program.stem}.toml")
    ]
    made = [v4.new_markdown_cell(f"# {title.rstrip('.')}\n\n{about}")]
    made += [v4.new_code_cell(each) for each in (*files, *cells(code))]
    for number, cell in enumerate(made):
        cell["id"] = f"{program.stem.replace('_', '-')}-{number}"  # deterministic
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=made, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


if __name__ == "__main__":
    programs = sorted(EXAMPLES.glob("*.py"))
    for program in programs:
        nbformat.write(notebook(program), program.with_suffix(".ipynb"))
    print(f"wrote {len(programs)} notebooks into {EXAMPLES}")
