"""Escaping arbitrary text for LaTeX and Markdown."""

from __future__ import annotations

import re

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
_LATEX = str.maketrans(
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
_MARKDOWN = re.compile(r"([\\`*_{}\[\]|~$#])")


def latex(text: str) -> str:
    r"""Return `text` for LaTeX, with Greek letters and signs as formulas.

    >>> latex("50 % of α_1")
    '50 \\% of $\\alpha$\\_1'
    """
    return text.translate(_LATEX)


def markdown(text: str) -> str:
    r"""Return `text` for a line of Markdown, also in a table.

    >>> markdown("a_b | <i>")
    'a\\_b \\| &lt;i>'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
