from documents import MEASURED, table

from belated_studies.reports.document import Cell
from belated_studies.reports.latex import table_latex


def test_latex_is_a_booktabs_float_with_the_paper_under_the_measured() -> None:
    text = table_latex(table(["DPSVI", MEASURED], ["random", Cell(value=-1.0)]))
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"\begin{tabular}{@{}lr@{}}" in text
    assert r"DPSVI & 11.53 {\footnotesize [11.40, 11.66]} $\checkmark$ \\" in text
    assert r"\quad{\footnotesize paper} & {\footnotesize 11.48 $\pm$ 0.81} \\" in text
    assert r"random & $-$1.00 \\" in text
    assert r"\label{tab:returns}" in text
    assert "$\\checkmark$ reproduced." in text


def test_latex_escapes_every_special_sign() -> None:
    text = table_latex(table([r"[50 % & $1 #_{}~^\ λ√²", "`a_b` **c**"]))
    assert (
        r"{}[50 \% \& \$1 \#\_\{\}\textasciitilde{}\textasciicircum{}\textbackslash{} $\lambda$$\surd$$^2$"
        r" & \texttt{a\_b} \textbf{c} \\"
    ) in text
