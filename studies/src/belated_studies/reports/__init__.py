"""What people read: tables, mini curves and figures made from stored rows. Nothing here learns."""

from belated_studies.reports.catalogue import catalogue
from belated_studies.reports.figures import regret_figure, save_figure, value_figure
from belated_studies.reports.files import describe_file
from belated_studies.reports.replay import Replay
from belated_studies.reports.summary import summary_markdown
from belated_studies.reports.terminal import spark, summary_table

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
