"""Makes the helpers of these tests and those of the library's tests importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "helpers"), str(HERE.parents[1] / "tests" / "helpers")]
