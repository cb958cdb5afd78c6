"""Results as JSON: the same numbers on every machine to ten decimals."""

import dataclasses
from collections.abc import Mapping
from typing import Any

DECIMALS = 10


def plain(value: Any) -> Any:
    """Return dataclasses as dicts and floats rounded; everything else as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        # Adding 0 turns -0.0 into 0.0, which JSON would tell apart.
        return round(value, DECIMALS) + 0.0
    return value
