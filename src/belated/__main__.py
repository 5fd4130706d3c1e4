"""`python -m belated`: the demo; with arguments, the same as the command `belated`."""

import sys

from belated._cli import app

if __name__ == "__main__":
    app(sys.argv[1:] or ["demo"], prog_name="python -m belated")
