"""A report as one page of Markdown, for a documentation site: its charts are pictures beside it."""

from __future__ import annotations

from belated_studies.reports.document import Chart, Document, Section
from belated_studies.reports.tables import table_markdown


def document_markdown(document: Document, *, pictures: str) -> str:
    """Return `document` as Markdown; the picture of a chart is `pictures`/id.png.

    >>> print(document_markdown(Document(title="Short", summary=["All is well."], facts={"Seeds": "3"}), pictures="p"))
    # Short
    <BLANKLINE>
    - All is well.
    <BLANKLINE>
    | | |
    |:---|:---|
    | Seeds | 3 |
    <BLANKLINE>
    """
    told = "\n".join(f"{number}. {claim.sentence}" for number, claim in enumerate(document.claims, 1))
    claims = f"## What the paper says, and what was measured\n\n{told}" if told else ""
    summary = "\n".join(f"- {sentence}" for sentence in document.summary)
    facts = "\n".join(["| | |", "|:---|:---|", *(f"| {name} | {fact} |" for name, fact in document.facts.items())])
    opening = "" if document.opening is None else _parts(document.opening, pictures)
    sections = [f"## {section.title}\n\n{_parts(section, pictures)}" for section in document.sections]
    parts = [f"# {document.title}", claims, opening, summary, facts, *(section.strip() for section in sections)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(section: Section, pictures: str) -> str:
    charts = [_chart(chart, pictures) for chart in section.charts]
    tables = [table_markdown(table).strip() for table in section.tables]
    return "\n\n".join([*section.paragraphs, *charts, *tables])


def _chart(chart: Chart, pictures: str) -> str:
    return f"![{chart.title}]({pictures}/{chart.id}.png)\n\n{chart.title}. {chart.caption}"
