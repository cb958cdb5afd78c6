"""How an agreement panel is put into words and small figures."""

from dataclasses import dataclass

from annotation.agreement import AgreementPanel, Estimate
from annotation.wording import (
    RELIABLE_ALPHA,
    alpha_words,
    interval_words,
    number,
    percent,
    reason_words,
)

# The axis of a row: coefficients under -0.2 stand at its end; the number beside it is exact.
LOWEST, HIGHEST = -0.2, 1.0
LEFT, RIGHT = 4, 236


@dataclass(frozen=True, slots=True)
class Whisker:
    """A dot with its interval on the row's axis, or why there is no number."""

    label: str = ""
    undefined: str = ""
    value: int = 0
    low: int | None = None
    high: int | None = None
    zero: int = 0
    reliable: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """One headline figure."""

    name: str
    value: str
    interval: str
    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one dimension, as text."""

    name: str
    n_pairable: int
    figure: Whisker
    alpha: str
    ac1: str
    psa: str
    nsa: str
    agreement: str
    met: str
    cannot_tell: str
    is_total: bool = False


def place(value: float) -> int:
    """Return where a value stands on the row's axis, kept within it."""
    share = (min(max(value, LOWEST), HIGHEST) - LOWEST) / (HIGHEST - LOWEST)
    return round(LEFT + share * (RIGHT - LEFT))


def whisker(estimate: Estimate) -> Whisker:
    """Return the figure of an estimate."""
    if estimate.value is None:
        return Whisker(undefined=reason_words(estimate.reason))
    bounded = estimate.low is not None and estimate.high is not None
    return Whisker(
        label=f"{number(estimate.value)}, {interval_words(estimate)}",
        value=place(estimate.value),
        low=place(estimate.low) if bounded and estimate.low is not None else None,
        high=place(estimate.high) if bounded and estimate.high is not None else None,
        zero=place(0),
        reliable=place(RELIABLE_ALPHA),
    )


def _card(name: str, estimate: Estimate, words: str) -> Card:
    if estimate.value is None:
        return Card(name=name, value="", interval="", words=reason_words(estimate.reason))
    return Card(
        name=name, value=number(estimate.value), interval=interval_words(estimate), words=words
    )


def headline(panel: AgreementPanel) -> list[Card]:
    """Return the four figures that are always shown together."""
    met = f"{percent(panel.prevalence.value)} of answers are “met”"
    return [
        _card("Krippendorff’s alpha", panel.alpha, alpha_words(panel.alpha)),
        _card("Gwet’s AC1", panel.ac1, met),
        _card("When one says met", panel.psa, "chance that another says met"),
        _card("When one says not met", panel.nsa, "chance that another says not met"),
    ]


def row(name: str, panel: AgreementPanel, *, is_total: bool = False) -> Row:
    """Return a table row; a dash stands where the figure beside it says why."""

    def short(estimate: Estimate) -> str:
        return "–" if estimate.value is None else number(estimate.value)

    return Row(
        name=name,
        n_pairable=panel.n_pairable,
        figure=whisker(panel.alpha),
        alpha=short(panel.alpha),
        ac1=short(panel.ac1),
        psa=short(panel.psa),
        nsa=short(panel.nsa),
        agreement=percent(panel.percent_agreement.value),
        met=percent(panel.prevalence.value),
        cannot_tell=percent(panel.cannot_tell_rate),
        is_total=is_total,
    )
