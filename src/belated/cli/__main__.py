"""`python -m belated.cli`: the command line, for where the script is not on the path."""

from belated.cli import main

main()
