"""How estimates stand on a page: a text, an interval in words, a dot and a whisker."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

from annotation.bootstrap import Estimate
from annotation.wording import number, reason_words

WIDTH = 240
# The dot's radius and its edge stay inside the figure.
MARGIN = 6
DIGEST_SHOWN = 12
# The sign never stands alone at the beginning of a line.
PER_CENT = "\u00a0%"


@dataclass(frozen=True, slots=True)
class Axis:
    """The stated range that figures of one column share."""

    low: float
    high: float
    words: str

    def place(self, value: float) -> float:
        """Return the horizontal place of a value, kept inside the figure."""
        inside = min(max(value, self.low), self.high)
        return MARGIN + (inside - self.low) / (self.high - self.low) * (WIDTH - 2 * MARGIN)


@dataclass(frozen=True, slots=True)
class Figure:
    """A dot with its whisker; `off` stands instead of them for a value left of the axis."""

    label: str
    dot: str = ""
    low: str = ""
    high: str = ""
    off: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """One estimate as it is read; without a text it is undefined, and `reason` says why."""

    text: str
    interval: str = ""
    reason: str = ""
    figure: Figure | None = None


UNIT_AXIS = Axis(0.0, 1.0, "0 to 1")
PERCENT_AXIS = Axis(0.0, 1.0, f"0 to 100{PER_CENT}")


def estimate_of(stored: Mapping[str, Any] | None) -> Estimate:
    """Return a stored estimate; one that was never computed is undefined."""
    if not stored or (stored.get("value") is None and stored.get("reason") is None):
        return Estimate(value=None, reason="not_computed")
    return Estimate(**{name: stored.get(name) for name in ("value", "low", "high", "reason")})


def points(share: float) -> str:
    """Return a share as points out of 100 with one decimal."""
    return f"{100 * share:.1f}"


def whole_points(share: float) -> str:
    """Return a share as points out of 100 without decimals."""
    return f"{100 * share:.0f}"


def show_percent(stored: Mapping[str, Any] | Estimate | None, axis: Axis | None = None) -> "Shown":
    """Return how an estimate that is a share is shown, in per cent."""
    return show(stored, axis, whole_points, PER_CENT)


def whole_percent(share: float | None) -> str:
    """Return a share as a percentage without decimals; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.0f}{PER_CENT}"


def small_percent(share: float | None) -> str:
    """Return a share as a percentage with one decimal, so that little is not shown as nothing."""
    if share is None:
        return "–"
    return f"0{PER_CENT}" if share == 0 else f"{100 * share:.1f}{PER_CENT}"


def show(
    stored: Mapping[str, Any] | Estimate | None,
    axis: Axis | None = None,
    text: Callable[[float], str] = number,
    unit: str = "",
) -> Shown:
    """Return how an estimate is shown, with a figure where an axis is given."""
    estimate = stored if isinstance(stored, Estimate) else estimate_of(stored)
    reason = reason_words(estimate.reason)
    if estimate.value is None:
        return Shown("", reason=reason)
    value = text(estimate.value) + unit
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f"{text(estimate.low)} to {text(estimate.high)}{unit}"
    return Shown(value, interval, reason, _figure(estimate, axis, value, interval))


def _figure(estimate: Estimate, axis: Axis | None, text: str, interval: str) -> Figure | None:
    if axis is None or estimate.value is None:
        return None
    label = f"{text}, {interval}" if interval else text
    if estimate.value < axis.low:
        return Figure(label, off=f"‹ {text}")
    low, high = estimate.low, estimate.high
    return Figure(
        label,
        dot=f"{axis.place(estimate.value):.1f}",
        low="" if low is None else f"{axis.place(low):.1f}",
        high="" if high is None else f"{axis.place(high):.1f}",
    )


def axis_from(lows: Iterable[float]) -> Axis:
    """Return the axis up to 100 % that begins at a multiple of 20 % below all lows."""
    lowest = min(lows, default=0.0)
    start = min(max(floor(lowest * 5) * 20, 0), 80)
    return Axis(start / 100, 1.0, f"{start} to 100{PER_CENT}")


def short(digest: str) -> str:
    """Return the beginning of a digest, enough to compare by eye."""
    return digest[:DIGEST_SHOWN]


def count(value: float) -> str:
    """Return a count; with several samples a reply weighs a fraction, so it may have decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
