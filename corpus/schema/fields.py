"""The kinds of fields that rows of a bundle have."""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

SLUG = re.compile(r"[-a-zA-Z0-9_]+")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOCALE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


class Row(BaseModel):
    """One line of a table: exactly these fields, each of exactly its type."""

    model_config = ConfigDict(extra="forbid", strict=True)


def refuse(reason: str) -> PydanticCustomError:
    """Return the error that says why a value is refused."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason})


def parse_moment(text: str) -> datetime:
    """Return the moment that a bundle's text names."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def moment_text(moment: datetime | None) -> str | None:
    """Return a moment as a bundle writes it."""
    if moment is None:
        return None
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds") + "Z"


def parse_moment_or_none(text: str | None) -> datetime | None:
    """Return the moment that a text names, or None."""
    return None if text is None else parse_moment(text)


def _matching(pattern: re.Pattern[str], reason: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise refuse(reason)
        return value

    return AfterValidator(check)


def _moment(value: str) -> str:
    try:
        if not _MOMENT.fullmatch(value) or not 1970 <= parse_moment(value).year <= 9998:
            raise ValueError
    except ValueError:
        raise refuse("must be a time in UTC such as 2026-12-01T09:30:00.000000Z") from None
    return value


def _day(value: str) -> str:
    try:
        if not _DAY.fullmatch(value):
            raise ValueError
        date.fromisoformat(value)
    except ValueError:
        raise refuse("must be a day such as 2026-12-01") from None
    return value


def _line(value: str) -> str:
    if not value.strip() or any(ord(char) < 32 or char == "\x7f" for char in value):
        raise refuse("must be one line of text that is not empty")
    return value


def _spoken(value: str) -> str:
    if not value.strip():
        raise refuse("the text is empty")
    return value


_SLUG_RULE = _matching(SLUG, "must be letters, digits, hyphens and underscores")
_KEY_RULE = _matching(_KEY, "must be letters, digits and . _ : - and start with a letter or digit")

Slug = Annotated[str, StringConstraints(max_length=64), _SLUG_RULE]
ConversationKey = Annotated[str, StringConstraints(max_length=128), _KEY_RULE]
CriterionKey = Annotated[str, StringConstraints(max_length=64), _KEY_RULE]
Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_line)]
Pseudonym = Annotated[str, StringConstraints(max_length=64), AfterValidator(_line)]
Locale = Annotated[
    str,
    StringConstraints(max_length=35),
    _matching(_LOCALE, "must be a language tag such as en-GB"),
]
Digest = Annotated[str, _matching(_DIGEST, "must be a SHA-256 in 64 small hexadecimal digits")]
Moment = Annotated[str, AfterValidator(_moment)]
Day = Annotated[str, AfterValidator(_day)]
Spoken = Annotated[str, AfterValidator(_spoken)]
Short = Annotated[str, StringConstraints(max_length=64)]
Long = Annotated[str, StringConstraints(max_length=200)]
Small = Annotated[int, Field(ge=0, le=32_767)]
Whole = Annotated[int, Field(ge=0, le=2_147_483_647)]
Numbered = Annotated[int, Field(ge=1, le=2_147_483_647)]
Big = Annotated[int, Field(ge=0, le=9_223_372_036_854_775_807)]
Probability = Annotated[float, Field(ge=0, le=1)]
Free = dict[str, Any]
