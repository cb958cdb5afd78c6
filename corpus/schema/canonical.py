"""Canonical JSON, digests, and where the respondent speaks."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, UTF-8, no NaN or infinity."""
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def places(turns: list[dict[str, str]]) -> list[int]:
    """Return where the respondent speaks: after which turns (their indexes), in order.

    That is between two user turns in a row, and at the end.
    """
    found = [
        index
        for index, (turn, following) in enumerate(zip(turns, turns[1:], strict=False))
        if turn["role"] == "user" and following["role"] == "user"
    ]
    return [*found, len(turns) - 1]
