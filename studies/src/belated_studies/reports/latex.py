"""A table of a report as LaTeX, ready for a paper that loads `booktabs` and `amssymb`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from belated_studies.reports.document import VERDICTS, Cell, Table
from belated_studies.reports.formatting import cell_text, holds_numbers, interval_text, published_text
from belated_studies.reports.markup import spans

_MARKS = (
    r"\checkmark",
    r"\times",
    r"\checkmark",
    r"\uparrow",
    r"\approx",
    r"\downarrow",
    r"\checkmark",
    r"\times",
    "?",
)
_VERDICT_MARKS: Mapping[str, str] = dict(zip(VERDICTS, _MARKS, strict=True))

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda",
    "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_SIGNS = {
    "−": "-", "±": r"\pm", "×": r"\times", "·": r"\cdot", "≤": r"\le", "≥": r"\ge", "≈": r"\approx", "≠": r"\ne",
    "∞": r"\infty", "→": r"\to", "√": r"\surd", "∈": r"\in", "²": "^2", "³": "^3", "✓": r"\checkmark", "✗": r"\times",
    "<": "<", ">": ">", "|": "|",
}  # fmt: skip
_ESCAPES = str.maketrans(
    {
        **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
        **{sign: f"${name}$" for sign, name in _SIGNS.items()},
        **{sign: rf"\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "–": "--",
        "—": "---",
        "…": r"\dots{}",
        "\n": " ",
    }
)
_COMMANDS = {"text": "{}", "code": r"\texttt{{{}}}", "bold": r"\textbf{{{}}}"}


def escape_latex(text: str) -> str:
    r"""Return `text` with its markup as LaTeX commands and every special sign made harmless.

    >>> escape_latex("50 % of **α_1**")
    '50 \\% of \\textbf{$\\alpha$\\_1}'
    """
    return "".join(_COMMANDS[kind].format(part.translate(_ESCAPES)) for kind, part in spans(text))


def table_latex(table: Table) -> str:
    """Return `table` as a float; what the paper printed stands in a line of its own under what was measured."""
    numbers = [holds_numbers(table, i) for i in range(len(table.columns))]
    title = rf"\textbf{{{escape_latex(table.title)}.}}"
    lines = [
        "% needs booktabs and amssymb",
        r"\begin{table}[tbp]",
        r"  \centering",
        rf"  \caption{{{' '.join([title, *_remarks(table)])}}}",
        rf"  \label{{tab:{table.id}}}",
        r"  \small",
        rf"  \begin{{tabular}}{{@{{}}{''.join('r' if number else 'l' for number in numbers)}@{{}}}}",
        r"    \toprule",
        _row([escape_latex(column) for column in table.columns]),
        r"    \midrule",
        *(line for row in table.rows for line in _rows(row)),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _remarks(table: Table) -> list[str]:
    """Return the caption, and what the marks in this table mean."""
    given = {entry.verdict for row in table.rows for entry in row if isinstance(entry, Cell)}
    marks = [f"${_VERDICT_MARKS[verdict]}$ {verdict}" for verdict in VERDICTS if verdict in given]
    return [part for part in (escape_latex(table.caption), "; ".join(marks) + "." if marks else "") if part]


def _rows(row: Sequence[str | Cell]) -> list[str]:
    """Return the line of what was measured, and that of the paper where it printed any number."""
    lines = [_row([_measured(entry) for entry in row])]
    published = [published_text(entry) if isinstance(entry, Cell) else "" for entry in row]
    if any(published):
        printed = [rf"{{\footnotesize {escape_latex(text)}}}" if text else "" for text in published]
        lines.append(_row([r"\quad{\footnotesize paper}" if isinstance(row[0], str) else printed[0], *printed[1:]]))
    return lines


def _measured(entry: str | Cell) -> str:
    if isinstance(entry, str):
        return escape_latex(entry)
    interval = interval_text(entry)
    text = escape_latex(cell_text(entry))
    if interval:
        text = text.replace(escape_latex(interval), rf"{{\footnotesize {escape_latex(interval)}}}", 1)
    return f"{text} ${_VERDICT_MARKS[entry.verdict]}$" if entry.verdict is not None else text


def _row(entries: list[str]) -> str:
    line = " & ".join(entries)
    # A row that starts with [ would be read as the optional length of the \\ before it.
    return "    " + ("{}" if line.startswith("[") else "") + line + r" \\"
