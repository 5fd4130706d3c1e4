"""A report as data, and as a page, figures and tables. Nothing here knows a study."""
