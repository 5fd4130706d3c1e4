"""The environments of the library under ids of Gymnasium: `belated/RiverSwim-v0` and the others."""

from __future__ import annotations

from belated.environments._gym_bridge import load_gymnasium
from belated.environments._registry import ENVIRONMENTS

IDS = {f"belated/{kind.__name__}-v0": name for name, kind in ENVIRONMENTS.items()}
"""The name of the environment behind each id. Keyword arguments of `gymnasium.make` are the settings of its class."""


def register_all() -> None:
    """Register every id that is not registered yet."""
    gymnasium = load_gymnasium()
    for id_, name in IDS.items():
        if id_ in gymnasium.registry:
            continue
        module = "belated.environments._finite_env"
        if name == "deepsea":
            gymnasium.register(id=id_, entry_point=f"{module}:DeepSeaEnv")
        else:
            gymnasium.register(id=id_, entry_point=f"{module}:NamedMDPEnv", kwargs={"environment": name})
