"""What people read: tables, mini curves and figures made from stored rows. Nothing here learns."""

from belated.reports.catalogue import catalogue
from belated.reports.figures import regret_figure, save_figure, value_figure
from belated.reports.files import describe_file
from belated.reports.replay import Replay
from belated.reports.summary import summary_markdown
from belated.reports.terminal import spark, summary_table

__all__ = [
    "Replay",
    "catalogue",
    "describe_file",
    "regret_figure",
    "save_figure",
    "spark",
    "summary_markdown",
    "summary_table",
    "value_figure",
]
