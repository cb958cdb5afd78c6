"""The leaderboard as it is read, from the stored scores of one ruler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpus.models import Respondent
from scoring.views.showing import (
    Axis,
    Shown,
    axis_from,
    count,
    points,
    short,
    show,
    show_percent,
    small_percent,
    whole_percent,
    whole_points,
)

HIGH, LOW = 0.9, 0.6
KINDS = {str(value): str(label) for value, label in Respondent.Kind.choices}

Stored = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A dimension's score in a row; `level` is hi, lo or nothing, and `words` says it."""

    shown: Shown
    level: str = ""
    words: str = ""
    conversations: int = 0


@dataclass(frozen=True, slots=True)
class Routing:
    """A share of replies that recognised in full and did not route, with its counts."""

    shown: Shown
    counts: str
    open: int


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One respondent's line."""

    name: str
    slug: str
    kind: str
    kind_words: str
    family: str
    rank: str
    score: Shown
    pooled: Shown
    dimensions: list[Cell]
    routing: Routing
    none_met: Routing
    refused: str
    missing: str
    bounds: str
    conversations: int
    replies: int
    unscored: int
    starts_group: bool


@dataclass(frozen=True, slots=True)
class Board:
    """All that a leaderboard shows."""

    axis: Axis
    dimensions: list[str]
    rows: list[BoardRow]
    pooled: Routing
    pooled_none: Routing
    limits: list[str]
    ruler: list[str]

    @property
    def has_floor(self) -> bool:
        """Return whether a line shows what a reply without content scores."""
        return any(row.kind == Respondent.Kind.FLOOR for row in self.rows)


def board_of(payload: Stored) -> Board:
    """Return the leaderboard of a stored score set."""
    stored = payload["rows"]
    axis = axis_from(_lows(stored))
    slugs = [dimension["slug"] for dimension in payload["dimensions"]]
    ranks = _ranks(stored)
    rows = [
        _row(row, axis, slugs, rank, starts_group=bool(place) and _kind_changes(stored, place))
        for place, (row, rank) in enumerate(zip(stored, ranks, strict=True))
    ]
    return Board(
        axis=axis,
        dimensions=[dimension["name"] for dimension in payload["dimensions"]],
        rows=rows,
        pooled=_routing(payload.get("pooled_routing"), "any_not_met"),
        pooled_none=_routing(payload.get("pooled_routing"), "none_met"),
        limits=list(payload.get("limits", [])),
        ruler=ruler_items(payload),
    )


def ruler_items(payload: Stored) -> list[str]:
    """Return what scores were measured with, for the foot of the page."""
    number, parts = payload["calibration"], payload["ruler_parts"]
    return [
        f"Ruler {short(payload['ruler'])}",
        f"Rubrics {short(parts['rubrics'])}",
        f"Judge {payload['judge']} v{payload['judge_version']}, {short(parts['judge'])}",
        f"Calibration {number}, {short(parts['calibration'])}" if number else "No calibration",
    ]


def _row(
    row: Stored, axis: Axis, slugs: Sequence[str], rank: str, *, starts_group: bool
) -> BoardRow:
    bounds = row.get("bounds")
    return BoardRow(
        name=row["name"],
        slug=row["respondent"],
        kind=row["kind"],
        kind_words=KINDS[row["kind"]],
        family=row.get("family", ""),
        rank=rank,
        score=show(row["score"], axis, points),
        pooled=show(row["pooled"], None, points),
        dimensions=[_cell(row["dimensions"].get(slug)) for slug in slugs],
        routing=_routing(row.get("routing"), "any_not_met"),
        none_met=_routing(row.get("routing"), "none_met"),
        refused=whole_percent(row.get("refusal_rate")),
        missing=small_percent(row.get("missing_weight")),
        bounds=f"{points(bounds[0])}–{points(bounds[1])}" if bounds else "",
        conversations=row.get("n_conversations", 0),
        replies=row.get("n_replies", 0),
        unscored=row.get("n_unscored", 0),
        starts_group=starts_group,
    )


def _cell(stored: Stored | None) -> Cell:
    if stored is None:
        return Cell(Shown("", reason="no criterion asks for it"))
    shown = show(stored["score"], None, whole_points)
    value = stored["score"]["value"]
    level, words = "", ""
    if value is not None and value >= HIGH:
        level, words = "hi", "high"
    elif value is not None and value < LOW:
        level, words = "lo", "low"
    return Cell(shown, level, words, stored.get("n_conversations", 0))


def _routing(stored: Stored | None, which: str) -> Routing:
    part = (stored or {}).get(which)
    if not part:
        return Routing(Shown("", reason="there is nothing to count from"), "", 0)
    counts = f"{count(part['numerator'])} of {count(part['denominator'])}"
    return Routing(show_percent(part["rate"]), counts, part.get("open", 0))


def _kind_changes(rows: Sequence[Stored], place: int) -> bool:
    return bool(rows[place]["kind"] != rows[place - 1]["kind"])


def _lows(rows: Sequence[Stored]) -> list[float]:
    scores = [row["score"] for row in rows if row["kind"] != Respondent.Kind.FLOOR]
    known = [score for score in scores if score["value"] is not None]
    return [score["value"] if score["low"] is None else score["low"] for score in known]


def _ranks(rows: Sequence[Stored]) -> list[str]:
    """Return the rank of each row; only models are ranked, equal scores share a rank."""
    scores = [
        row["score"]["value"]
        for row in rows
        if row["kind"] == Respondent.Kind.MODEL and row["score"]["value"] is not None
    ]
    return [
        str(1 + sum(score > row["score"]["value"] for score in scores))
        if row["kind"] == Respondent.Kind.MODEL and row["score"]["value"] is not None
        else "–"
        for row in rows
    ]
