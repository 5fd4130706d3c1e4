"""How a number of a report is written, the same in every format."""

from __future__ import annotations

import math

from belated_studies.reports.document import Cell, Table

#: Stands where there is no number and nothing to say about it.
NOTHING = "–"


def cell_text(cell: Cell) -> str:
    """Return the measured number, its interval and its note; of a cell not measured, the note alone.

    >>> cell_text(Cell(value=11.53, low=11.4, high=11.66))
    '11.53 [11.40, 11.66]'
    >>> cell_text(Cell(value=None, note="not run"))
    'not run'
    """
    if not measured(cell):
        return cell.note or NOTHING
    note = f"({cell.note})" if cell.note else ""
    return " ".join(part for part in (value_text(cell), interval_text(cell), note) if part)


def measured(cell: Cell) -> bool:
    """Return whether there is a number to show."""
    return cell.value is not None and not math.isnan(cell.value)


def value_text(cell: Cell) -> str:
    """Return the measured number, or an empty text."""
    return number_text(cell.value, cell.digits) if cell.value is not None and measured(cell) else ""


def interval_text(cell: Cell) -> str:
    """Return the interval in brackets, or an empty text where there is none."""
    if not measured(cell) or math.isnan(cell.low) or math.isnan(cell.high):
        return ""
    return f"[{number_text(cell.low, cell.digits)}, {number_text(cell.high, cell.digits)}]"


def published_text(cell: Cell) -> str:
    """Return the paper's number with the ± it prints, or an empty text.

    >>> published_text(Cell(value=None, published=11.48, published_spread=0.81))
    '11.48 ± 0.81'
    """
    if cell.published is None:
        return ""
    number = number_text(cell.published, cell.digits)
    return number if cell.published_spread is None else f"{number} ± {number_text(cell.published_spread, cell.digits)}"


def number_text(number: float, digits: int) -> str:
    """Return `number` with `digits` decimals, thousands apart, and a true minus sign, never in front of zero.

    >>> number_text(-12345.678, 1), number_text(-0.001, 2)
    ('−12,345.7', '0.00')
    """
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:,.{digits}f}"
    if text.startswith("-"):
        return text[1:] if float(text.replace(",", "")) == 0 else "−" + text[1:]
    return text


def holds_numbers(table: Table, column: int) -> bool:
    """Return whether any entry of `column` is a cell, so that the column is set as numbers."""
    return any(isinstance(row[column], Cell) for row in table.rows)
