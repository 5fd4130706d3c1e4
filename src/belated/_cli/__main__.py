"""`python -m belated._cli`: the command line, for where the script is not on the path."""

from belated._cli import main

main()
