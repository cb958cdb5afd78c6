"""How numbers look in a terminal."""

from typing import Any

from rich.console import Console

# Where the output is no terminal: wide enough for each table.
WIDTH = 110

REASONS = {
    "too_few_conversations": "too few conversations",
    "too_little_judged": "too little judged",
    "no_conversations": "no conversations",
    "empty_denominator": "no such case",
}


def make_console(out: Any) -> Console:
    """Return a console on a command's output, as wide as its terminal."""
    console = Console(file=out)
    return console if console.is_terminal else Console(file=out, width=WIDTH)


def percent(value: float | None) -> str:
    """Return a share in per cent, or a dash."""
    return "–" if value is None else f"{100 * value:.1f}"


def estimate(found: dict[str, Any] | None, *, interval: bool = True) -> str:
    """Return an estimate in per cent with its interval, or why there is none."""
    if found is None:
        return "–"
    if found["value"] is None:
        return f"– ({REASONS.get(found['reason'], str(found['reason']).replace('_', ' '))})"
    text = percent(found["value"])
    if interval and found["low"] is not None:
        text += f" [{percent(found['low'])}, {percent(found['high'])}]"
    return text
