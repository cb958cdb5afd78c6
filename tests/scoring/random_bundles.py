"""Random bundles for property tests: whatever the format allows, in canonical order."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from annotation.schema import Replay, comment_digest
from corpus.schema import canonical_json, places
from scoring.selectors import judge_digest
from tests.scoring.bundles import Tables

_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.one_of(
    st.text(_CHARACTERS, max_size=30),
    st.sampled_from(["🙂\n\nשלום", "é e\u0301", "line\r\nline", "=1+1", '"\\', "\u2028", "a\tb"]),
)
spoken = texts.filter(lambda text: bool(text.strip()))
names = st.text(_CHARACTERS, min_size=1, max_size=20).filter(
    lambda text: bool(text.strip()) and not any(ord(c) < 32 or c == "\x7f" for c in text)
)
_floats = st.floats(allow_nan=False, allow_infinity=False, width=64).filter(
    lambda value: 1e-300 < abs(value) < 1e15
)
free = st.dictionaries(
    texts.filter(lambda key: key != "bundle_notice"),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**30), 10**30) | _floats | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
moments = st.datetimes().map(
    lambda moment: (
        moment.replace(year=2000 + moment.year % 100).isoformat(timespec="microseconds") + "Z"
    )
)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)


def _from_pools(draw: st.DrawFn) -> Any:
    """Return a way to draw that takes long values from a few: a bundle has many fields."""
    pools: dict[int, list[Any]] = {}

    def pooled(strategy: st.SearchStrategy[Any]) -> Any:
        if strategy not in (texts, spoken, names, free, moments, digests):
            return draw(strategy)
        if id(strategy) not in pools:
            pools[id(strategy)] = draw(st.lists(strategy, min_size=2, max_size=4))
        return draw(st.sampled_from(pools[id(strategy)]))

    return pooled


@st.composite
def bundles(draw: st.DrawFn) -> Tables:
    """Return the tables of a bundle that stands on its own."""
    draw = _from_pools(draw)
    tables: Tables = {
        "collections": [
            {"slug": slug, "name": draw(names), "description": draw(texts), "source": draw(free)}
            for slug in draw(_some(["alpha", "beta"]))
        ],
        "respondents": [
            {
                "slug": slug,
                "name": draw(names),
                "kind": draw(st.sampled_from(["model", "reference", "floor"])),
                "family": draw(st.sampled_from(["", "F"])),
                "config": draw(free),
            }
            for slug in draw(_some(["r1", "r2"]))
        ],
        "annotators": [{"pseudonym": name} for name in sorted(draw(st.sets(names, max_size=3)))],
        "judges": [_judge(draw, number) for number in range(draw(st.integers(0, 2)))],
    }
    tables["judges"] = list({row["digest"]: row for row in tables["judges"]}.values())
    for collection in tables["collections"]:
        _fill_collection(draw, tables, collection["slug"])
    for rows in tables.values():
        rows.sort(key=_key)
    return {name: rows for name, rows in tables.items() if rows}


def _some(keys: list[str]) -> st.SearchStrategy[list[str]]:
    return st.sets(st.sampled_from(keys), min_size=1).map(sorted)


# The natural keys of all tables, in the order of their parts; a table has some of them.
_PARTS = (
    *("judge", "judge_version", "round", "collection", "conversation", "respondent", "sample"),
    *("occurrence", "annotator", "order"),
)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    if "pseudonym" in row:
        return (row["pseudonym"],)
    if "digest" in row or "overlap" in row:
        return (row["name"], row.get("version", 0))
    last = ("slug", "key", "version", "criterion", "draw", "criteria_digest")
    ends = [] if "order" in row and "confidence" not in row else [*last, "order"]
    return tuple(row[part] for part in (*_PARTS[:-1], *(ends or ["order"])) if part in row)


def _judge(draw: st.DrawFn, number: int) -> dict[str, Any]:
    configuration = {
        "kind": draw(st.sampled_from(["llm", "baseline"])),
        "endpoint": "",
        "model": draw(st.sampled_from(["", "m"])),
        "prompt": draw(texts),
        "params": draw(free),
        "artifact": draw(st.none() | free),
        "mode": draw(st.sampled_from(["criterion", "rubric"])),
    }
    return {
        "name": "judge",
        "version": number + 1,
        "family": "",
        "created_at": draw(moments),
        "digest": judge_digest(**configuration),
        **configuration,
    }


def _fill_collection(draw: st.DrawFn, tables: Tables, slug: str) -> None:
    dimensions = draw(_some(["act", "hold"]))
    subcategories = draw(st.sets(st.sampled_from(["s1", "s2"])).map(sorted))
    for table, keys in (("dimensions", dimensions), ("subcategories", subcategories)):
        for key in keys:
            row = {
                "collection": slug,
                "slug": key,
                "name": draw(names),
                "description": draw(texts),
                "position": draw(st.integers(0, 9)),
            }
            if table == "dimensions":
                row["stance"] = draw(st.sampled_from(["act", "withhold"]))
            tables.setdefault(table, []).append(row)
    keys = draw(_some(["k.1", "k:2", "K_3"]))
    items = []
    for number, key in enumerate(keys):
        turns = [
            {"role": draw(st.sampled_from(["user", "assistant"])), "text": draw(spoken)}
            for _ in range(draw(st.integers(0, 3)))
        ]
        turns.append({"role": "user", "text": draw(spoken)})
        tables.setdefault("conversations", []).append(
            {
                "collection": slug,
                "key": key,
                "subcategory": draw(st.sampled_from([None, *subcategories])),
                "locale": draw(st.sampled_from(["en", "en-GB", "zh-Hant-TW"])),
                "turns": turns,
                "status": draw(st.sampled_from(["active", "embargoed", "withdrawn"])),
                "authors": [draw(names) for _ in range(draw(st.integers(0, 2)))],
                "source": draw(free),
                "supersedes": keys[number - 1] if number and draw(st.booleans()) else None,
            }
        )
        criteria = _fill_rubric(draw, tables, slug, key, dimensions)
        replies = _fill_replies(draw, tables, slug, key, len(places(turns)))
        if criteria and any(
            row["status"] == "published"
            for row in tables["rubrics"]
            if (row["collection"], row["conversation"]) == (slug, key)
        ):
            items += [(key, reply, criteria) for reply in replies]
        _fill_verdicts(draw, tables, slug, key, replies, criteria)
    if draw(st.booleans()):
        _fill_round(draw, tables, slug, items)
    if draw(st.booleans()):
        dev = draw(st.sets(st.sampled_from(keys)).map(sorted))
        tables.setdefault("splits", []).append(
            {
                "collection": slug,
                "seed": draw(st.integers(0, 2**31 - 1)),
                "dev_share": draw(st.sampled_from([0.5, 1 / 3, 1e-9])),
                "created_at": draw(moments),
                "dev": dev,
                "test": sorted(set(keys) - set(dev)),
                "openings": [
                    {
                        "number": number,
                        "targets": draw(free),
                        "reason": draw(spoken),
                        "opened_at": draw(moments),
                    }
                    for number in draw(st.sampled_from([[], [1], [1, 2]]))
                ],
            }
        )


def _fill_rubric(
    draw: st.DrawFn, tables: Tables, slug: str, key: str, dimensions: list[str]
) -> list[str]:
    """Add criteria and up to three versions; returns what the published one asks."""
    criteria = draw(st.sets(st.sampled_from(["c1", "c2", "c3"])).map(sorted))
    for number, name in enumerate(criteria):
        same = criteria[number - 1] if number and draw(st.booleans()) else None
        tables.setdefault("criteria", []).append(
            {
                "collection": slug,
                "conversation": key,
                "key": name,
                "text": draw(spoken),
                "same_meaning_as": same,
                "reason": "A typing mistake." if same else "",
                "source": draw(free),
            }
        )
    asked: list[str] = []
    states = draw(
        st.sampled_from([[], ["draft"], ["published"], ["retired", "published", "draft"]])
    )
    for version, status in enumerate(states, start=1):
        if not criteria and status != "draft":
            continue
        chosen = draw(st.permutations(criteria))
        if status == "published":
            asked = list(chosen)
        tables.setdefault("rubrics", []).append(
            {
                "collection": slug,
                "conversation": key,
                "version": version,
                "status": status,
                "published_at": None if status == "draft" else draw(moments),
                "author": draw(st.sampled_from(["", "A"])),
                "change_note": draw(texts),
                "items": [
                    {
                        "criterion": name,
                        "dimension": draw(st.sampled_from(dimensions)),
                        "weight": draw(st.integers(1, 20)),
                        "position": position,
                    }
                    for position, name in enumerate(chosen)
                ],
            }
        )
    tables.setdefault("rubrics", [])
    return asked


def _fill_replies(
    draw: st.DrawFn, tables: Tables, slug: str, key: str, count: int
) -> list[dict[str, Any]]:
    made = []
    for respondent in tables["respondents"]:
        for sample in range(draw(st.integers(0, 2))):
            turns = [draw(texts) for _ in range(count)]
            said = any(text.strip() for text in turns)
            outcomes = ["refused", "filtered", "truncated", *(["answered"] if said else ["empty"])]
            made.append(
                {
                    "collection": slug,
                    "conversation": key,
                    "respondent": respondent["slug"],
                    "sample": sample,
                    "turns": turns,
                    "outcome": draw(st.sampled_from(outcomes)),
                    "finish_reason": "",
                    "returned_model": draw(st.sampled_from(["", "m-2026"])),
                    "authors": [draw(names) for _ in range(draw(st.integers(0, 1)))],
                    "source": draw(free),
                    "replied_on": draw(st.none() | st.dates().map(lambda day: day.isoformat())),
                    "created_at": draw(moments),
                }
            )
    tables.setdefault("replies", []).extend(made)
    return made


def _fill_verdicts(
    draw: st.DrawFn,
    tables: Tables,
    slug: str,
    key: str,
    replies: list[dict[str, Any]],
    criteria: list[str],
) -> None:
    for judge in tables["judges"]:
        for reply in replies:
            for name in criteria:
                if not draw(st.booleans()):
                    continue
                tables.setdefault("verdicts", []).append(
                    {
                        "judge": judge["name"],
                        "judge_version": judge["version"],
                        "collection": slug,
                        "conversation": key,
                        "respondent": reply["respondent"],
                        "sample": reply["sample"],
                        "criterion": name,
                        # Draw 0 would enter scores, which a bundle then has as well.
                        "draw": draw(st.integers(1, 5)),
                        "criteria_digest": draw(digests) if judge["mode"] == "rubric" else "",
                        "met": draw(st.booleans()),
                        "probability": draw(st.none() | st.floats(1e-6, 1)),
                        "explanation": draw(texts),
                        "quote": draw(texts),
                        "quote_found": draw(st.none() | st.booleans()),
                        "created_at": draw(moments),
                    }
                )


def _fill_round(
    draw: st.DrawFn,
    tables: Tables,
    slug: str,
    chosen: list[tuple[str, dict[str, Any], list[str]]],
) -> None:
    annotators = [row["pseudonym"] for row in tables["annotators"]]
    overlap = draw(st.integers(1, 3))
    items = []
    name = f"Round of {slug}"
    for key, reply, criteria in chosen:
        rubric = next(
            row
            for row in tables["rubrics"]
            if (row["collection"], row["conversation"], row["status"]) == (slug, key, "published")
        )
        item = {
            "conversation": key,
            "respondent": reply["respondent"],
            "sample": reply["sample"],
            "occurrence": 0,
            "kind": "regular",
            "reserved_for": None,
            "rubric_version": rubric["version"],
            "position": draw(st.integers(0, 3)),
            "slots": list(range(1, overlap + 1)),
            "criteria": [
                {"criterion": one, "inclusion_probability": draw(st.sampled_from([1.0, 0.25]))}
                for one in criteria
            ],
        }
        items.append(item)
        _fill_work(draw, tables, name, item, reply, annotators, overlap)
    items.sort(key=lambda i: (i["position"], i["conversation"], i["respondent"], i["sample"]))
    tables.setdefault("rounds", []).append(
        {
            "name": name,
            "collection": slug,
            "purpose": draw(st.sampled_from(["practice", "calibration", "audit"])),
            "guidelines": draw(texts),
            "overlap": overlap,
            "status": draw(st.sampled_from(["open", "paused"])),
            "seed": 0,
            "plan": draw(free),
            "created_at": draw(moments),
            "opened_at": draw(moments),
            "closed_at": None,
            "members": [{"annotator": one, "active": draw(st.booleans())} for one in annotators],
            "items": items,
        }
    )


def _fill_work(
    draw: st.DrawFn,
    tables: Tables,
    round_name: str,
    item: dict[str, Any],
    reply: dict[str, Any],
    annotators: list[str],
    overlap: int,
) -> None:
    slots = list(range(1, overlap + 1))
    criteria = [one["criterion"] for one in item["criteria"]]
    for annotator in annotators:
        state = draw(st.sampled_from(["none", "active", "submitted", "lapsed", "skipped"]))
        holds = state in {"active", "submitted"}
        if state == "none" or (holds and not slots):
            continue
        work = {
            "round": round_name,
            **{name: item[name] for name in ("conversation", "respondent", "sample", "occurrence")},
            "annotator": annotator,
        }
        tables.setdefault("assignments", []).append(
            {
                **work,
                "state": state,
                "slot": slots.pop() if holds else None,
                "position": draw(st.integers(0, 9)),
                "lease_until": draw(moments) if state == "active" else None,
                "claimed_at": draw(moments),
                "started_at": draw(st.none() | moments),
                "submitted_at": draw(moments) if state == "submitted" else None,
                "active_seconds": draw(st.integers(0, 999)),
                "events": [{"kind": "claimed", "at": draw(moments)}],
            }
        )
        _fill_answers(draw, tables, work, criteria, reply["turns"], state == "submitted")


def _fill_answers(
    draw: st.DrawFn,
    tables: Tables,
    work: dict[str, Any],
    criteria: list[str],
    texts_of_reply: list[str],
    complete: bool,
) -> None:
    replay: Replay[dict[str, Any]] = Replay()
    sent: set[tuple[str, int]] = set()
    asked = draw(st.lists(st.sampled_from(criteria), max_size=5)) if criteria else []
    # What a submission needs comes last, from a client of its own.
    planned = [(one, draw(st.sampled_from("xy")), draw(st.integers(0, 9)), False) for one in asked]
    if complete:
        planned += [(one, "end", number, True) for number, one in enumerate(criteria)]
    order = 0
    for criterion, client, seq, last in planned:
        if (client, seq) in sent:
            continue
        sent.add((client, seq))
        order += 1
        value = draw(st.sampled_from(["met", "not_met", "cannot_tell", *([] if last else [None])]))
        comment = draw(texts)
        quotes = []
        spots = [(turn, text) for turn, text in enumerate(texts_of_reply) if text]
        if spots and draw(st.booleans()):
            turn, text = draw(st.sampled_from(spots))
            start = draw(st.integers(0, len(text) - 1))
            quotes = [{"turn": turn, "start": start, "text": text[start : start + 4]}]
        answer = {
            "value": value,
            "reason": "not_applicable" if value == "cannot_tell" else "",
            "comment": comment,
            "quotes": quotes,
        }
        at = draw(moments)
        tables.setdefault("label_events", []).append(
            {
                **work,
                **answer,
                "order": order,
                "criterion": criterion,
                "client": client,
                "seq": seq,
                "comment_digest": comment_digest(comment),
                "at": at,
            }
        )
        replay.add(criterion, client, seq, {**answer, "updated_at": at})
    tables.setdefault("labels", []).extend(
        {**work, "criterion": criterion, **answer}
        for criterion, answer in sorted(replay.answers.items())
    )
    assert canonical_json(tables)
