"""What is wrong with a file, and where."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from corpus.schema.canonical import canonical_json

SHOWN = 60


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: the file, the line (None: the whole file), the field, the value."""

    file: str
    line: int | None
    field: str
    value: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fault as plain data."""
        return asdict(self)


Report = Callable[[Fault], None]


def shown(value: object) -> str:
    """Return a value short and safe to print: one line, no control or direction characters."""
    if isinstance(value, str):
        text = value[: SHOWN + 1]
    else:
        try:
            text = canonical_json(value)[: SHOWN + 1]
        except (TypeError, ValueError, RecursionError):
            text = repr(type(value).__name__)
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


# How pydantic names what people can do wrong, in words for people.
_REASONS = {
    "missing": "this field is missing",
    "extra_forbidden": "there is no such field; unknown facts belong in source or config",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null",
}


def model_problems(error: ValidationError) -> Iterator[tuple[str, object, str]]:
    """Yield field, value and reason of everything a row's model refused."""
    for item in error.errors(include_url=False):
        kind = item["type"]
        context = item.get("ctx", {})
        reason = _REASONS.get(kind, "")
        if kind == "literal_error":
            reason = f"must be one of: {str(context['expected']).replace(' or ', ', ')}"
        elif kind in {"greater_than_equal", "greater_than"}:
            bound = context.get("ge", context.get("gt"))
            reason = f"must be {'at least' if 'ge' in context else 'more than'} {bound}"
        elif kind in {"less_than_equal", "less_than"}:
            bound = context.get("le", context.get("lt"))
            reason = f"must be {'at most' if 'le' in context else 'less than'} {bound}"
        elif kind == "string_too_long":
            reason = f"is longer than {context['max_length']} characters"
        elif kind == "string_too_short":
            reason = "must not be empty"
        elif kind == "too_short":
            reason = f"must have at least {context['min_length']}"
        value: object = "" if kind == "missing" else item.get("input")
        yield field_path(item["loc"]), value, reason or item["msg"]


def field_path(location: tuple[int | str, ...]) -> str:
    """Return a location as people write it: turns[2].text."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    return path
