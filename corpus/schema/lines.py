"""Read JSON Lines strictly: every line one object, and nothing that a database would change."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from corpus.schema.faults import Fault, Report, field_path, shown

MAX_LINE = 64 * 1024 * 1024
MAX_DEPTH = 40

# Only a line with such an escape can hold a NUL or half of a surrogate pair.
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class _Refused(Exception):
    """A line is not what the format allows."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(reason)
        self.field, self.value, self.reason = field, value, reason


def read_lines(
    stream: BinaryIO, file: str, report: Report
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the number and the object of every line; None where it was refused and reported."""
    number = 0
    crlf_reported = False
    while raw := stream.readline(MAX_LINE + 1):
        number += 1

        def refuse(value: object, reason: str, field: str = "", line: int = number) -> None:
            report(Fault(file, line, field, shown(value), reason))

        if len(raw) > MAX_LINE and not raw.endswith(b"\n"):
            refuse("", f"the line is longer than {MAX_LINE:,} bytes")
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(MAX_LINE)
            yield number, None
            continue
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            refuse("U+FEFF", "the file starts with a byte order mark; it must be plain UTF-8")
            raw = raw[len(codecs.BOM_UTF8) :]
        if raw.endswith(b"\r\n"):
            if not crlf_reported:
                refuse("", "the line ends with CR LF; lines end with LF (told once per file)")
            crlf_reported = True
            raw = raw[:-2] + b"\n"
        if not raw.strip():
            refuse("", "the line is empty")
            yield number, None
            continue
        try:
            yield number, parse_object(raw)
        except _Refused as refused:
            refuse(refused.value, refused.reason, refused.field)
            yield number, None


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of one line; raise a refusal with its place."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        around = raw[max(0, error.start - 5) : error.start + 5]
        raise _Refused(
            "", repr(around)[2:-1], f"byte {error.start + 1} is not valid UTF-8"
        ) from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        around_text = text[max(0, error.pos - 10) : error.pos + 20]
        raise _Refused("", around_text, f"not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise _Refused("", "", "the JSON is nested too deeply") from None
    except ValueError:
        raise _Refused("", "", "a number has too many digits") from None
    if not isinstance(value, dict):
        raise _Refused("", value, "the line must be a JSON object")
    _refuse_deep(value)
    if _SUSPECT.search(text):
        _refuse_characters(value, ())
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        for key, value in pairs:
            if key in seen:
                raise _Refused(shown(key), value, "the key stands twice in one object")
            seen.add(key)
    return found


def _no_constant(name: str) -> NoReturn:
    raise _Refused("", name, f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused("", text, "the number is too large")
    # PostgreSQL gives these back as a whole number, so that the same state had two texts.
    if abs(value) >= 1e16 or (value == 0 and text.startswith("-")):
        raise _Refused("", text, "write this number as a whole number")
    return value


def _refuse_deep(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise _Refused("", "", f"the JSON is nested deeper than {MAX_DEPTH} levels")


def _refuse_characters(value: Any, path: tuple[int | str, ...]) -> None:
    if isinstance(value, str):
        for char in value:
            if char == "\0":
                raise _Refused(field_path(path), value, "the text holds a NUL character")
            if "\ud800" <= char <= "\udfff":
                raise _Refused(field_path(path), value, "the text holds half of a surrogate pair")
    elif isinstance(value, dict):
        for key, child in value.items():
            _refuse_characters(key, (*path, shown(key)))
            _refuse_characters(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _refuse_characters(child, (*path, index))
