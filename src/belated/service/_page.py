"""The page for people, kept as a file of its own."""

from importlib import resources

PAGE = (resources.files("belated.service") / "page.html").read_bytes()
