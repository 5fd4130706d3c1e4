"""Makes the modules of `helpers`, such as the plain NumPy transcriptions, importable from every test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
