"""What people type, checked before it is stored."""

from django.core.exceptions import ValidationError


def checked_text(text: object, longest: int, what: str) -> str:
    """Return a text that any database can store; NUL and lone surrogates are refused."""
    if not isinstance(text, str):
        raise ValidationError(f"A {what} is a text.")
    if len(text) > longest:
        raise ValidationError(f"A {what} has at most {longest:,} characters.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        storable = False
    else:
        storable = "\x00" not in text
    if not storable:
        raise ValidationError(f"The {what} has a character that cannot be stored.")
    return text
