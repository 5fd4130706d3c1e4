"""How late feedback is: delay distributions, and the buffer that holds what has not arrived yet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
