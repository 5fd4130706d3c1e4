"""belated: reinforcement learning and bandits for rewards that arrive late."""

from pathlib import Path as _Path

import lazy_loader as _lazy

from belated._util.version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)  # the names are in __init__.pyi
_modules = {path.stem for path in _Path(__file__).parent.iterdir()}
__all__ = [name for name in __all__ if name not in _modules]  # `import *` should not import a name like `types`
