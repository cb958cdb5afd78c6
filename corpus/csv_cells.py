"""Text in CSV files that a spreadsheet opens. No Django here."""

# What a spreadsheet may take for the start of a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def neutralised(text: str) -> str:
    """Return a text that no spreadsheet runs as a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
