"""The decision service: decide over HTTP now, learn whenever the reward arrives, lose nothing that was acknowledged.

A thin layer over `belated.decisions`: requests are parsed strictly (`_bodies`), queued for their model's writer thread
(`_writer`), stored in one commit with all other waiting requests, and answered after that commit (`_app`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
