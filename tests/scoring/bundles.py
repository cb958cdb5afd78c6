"""Bundles for tests: a small one that has a row of every kind, and ways to write and read one."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.apps import apps

from annotation.schema import comment_digest
from corpus.schema import canonical_json, digest
from scoring.bundle import MANIFEST, manifest_line

Tables = dict[str, list[dict[str, Any]]]
AT = "2026-11-02T09:00:00.000000Z"
ITEM = {"conversation": "one", "respondent": "warm", "sample": 0, "occurrence": 0}
WORK = {"round": "First", **ITEM, "annotator": "a1"}


def small_tables() -> Tables:
    """Return the rows of a bundle in which everything refers to something."""
    # Benchmarks use this module in a process without Django.
    from scoring.selectors import calibration_digest, judge_digest

    turns = [{"role": "user", "text": "It is a bad night."}]
    judge = {
        "kind": "llm",
        "endpoint": "stub",
        "model": "m",
        "prompt": "Judge.",
        "params": {"temperature": 0},
        "artifact": None,
        "mode": "criterion",
    }
    judge_key = judge_digest(**judge)
    calibration = {
        "rounds": ["First"],
        "metrics": {"overall": {"sensitivity": 0.5}},
        "parameters": {"conversations": ["one"]},
    }
    labels_digest = digest("labels")
    event = {"reason": "", "quotes": [], "comment": "", "comment_digest": "", "at": AT}
    remark = "Here it is."
    return copy.deepcopy(
        {
            "collections": [
                {"slug": "tiny", "name": "Tiny", "description": "", "source": {"canary": "c-1"}}
            ],
            "dimensions": [_dimension("care", "act", 1), _dimension("harm", "withhold", 2)],
            "subcategories": [_dimension("night", None, 1)],
            "conversations": [
                {
                    "collection": "tiny",
                    "key": key,
                    "subcategory": "night",
                    "locale": "en-GB",
                    "turns": turns,
                    "status": "active",
                    "authors": ["Synthetic"],
                    "source": {},
                    "supersedes": None,
                }
                for key in ("one", "two")
            ],
            "criteria": [
                {
                    "collection": "tiny",
                    "conversation": key,
                    "key": name,
                    "text": f"Says {name}.",
                    "same_meaning_as": None,
                    "reason": "",
                    "source": {},
                }
                for key in ("one", "two")
                for name in ("c1", "c2")
            ],
            "rubrics": [
                {
                    "collection": "tiny",
                    "conversation": key,
                    "version": 1,
                    "status": "published",
                    "published_at": AT,
                    "author": "",
                    "change_note": "",
                    "items": [
                        {"criterion": "c1", "dimension": "care", "weight": 5, "position": 1},
                        {"criterion": "c2", "dimension": "harm", "weight": 3, "position": 2},
                    ],
                }
                for key in ("one", "two")
            ],
            "respondents": [
                {"slug": "warm", "name": "Warm", "kind": "model", "family": "", "config": {}}
            ],
            "replies": [
                {
                    "collection": "tiny",
                    "conversation": key,
                    "respondent": "warm",
                    "sample": 0,
                    "turns": ["I am here with you."],
                    "outcome": "answered",
                    "finish_reason": "",
                    "returned_model": "",
                    "authors": [],
                    "source": {},
                    "replied_on": "2026-10-01",
                    "created_at": AT,
                }
                for key in ("one", "two")
            ],
            "annotators": [{"pseudonym": "a1"}, {"pseudonym": "a2"}],
            "rounds": [
                {
                    "name": "First",
                    "collection": "tiny",
                    "purpose": "calibration",
                    "guidelines": "Read first.",
                    "overlap": 2,
                    "status": "open",
                    "seed": 0,
                    "plan": {},
                    "created_at": AT,
                    "opened_at": AT,
                    "closed_at": None,
                    "members": [
                        {"annotator": "a1", "active": True},
                        {"annotator": "a2", "active": True},
                    ],
                    "items": [
                        {
                            **ITEM,
                            "kind": "regular",
                            "reserved_for": None,
                            "rubric_version": 1,
                            "position": 1,
                            "slots": [1, 2],
                            "criteria": [
                                {"criterion": "c1", "inclusion_probability": 1.0},
                                {"criterion": "c2", "inclusion_probability": 1.0},
                            ],
                        }
                    ],
                }
            ],
            "assignments": [
                {
                    **WORK,
                    "state": "submitted",
                    "slot": 1,
                    "position": 1,
                    "lease_until": None,
                    "claimed_at": AT,
                    "started_at": AT,
                    "submitted_at": AT,
                    "active_seconds": 60,
                    "events": [{"kind": "claimed", "at": AT}, {"kind": "submitted", "at": AT}],
                }
            ],
            "label_events": [
                {
                    **WORK,
                    **event,
                    "order": 1,
                    "criterion": "c1",
                    "client": "x",
                    "seq": 1,
                    "value": "not_met",
                },
                {
                    **WORK,
                    **event,
                    "order": 2,
                    "criterion": "c1",
                    "client": "x",
                    "seq": 2,
                    "value": "met",
                    "comment": remark,
                    "comment_digest": comment_digest(remark),
                    "quotes": [{"turn": 0, "start": 5, "text": "here"}],
                },
                {
                    **WORK,
                    **event,
                    "order": 3,
                    "criterion": "c2",
                    "client": "x",
                    "seq": 3,
                    "value": "cannot_tell",
                    "reason": "reply_ambiguous",
                },
            ],
            "labels": [
                {
                    **WORK,
                    "criterion": "c1",
                    "value": "met",
                    "reason": "",
                    "comment": remark,
                    "quotes": [{"turn": 0, "start": 5, "text": "here"}],
                    "updated_at": AT,
                },
                {
                    **WORK,
                    "criterion": "c2",
                    "value": "cannot_tell",
                    "reason": "reply_ambiguous",
                    "comment": "",
                    "quotes": [],
                    "updated_at": AT,
                },
            ],
            "adjudications": [
                {
                    "round": "First",
                    "conversation": "one",
                    "respondent": "warm",
                    "sample": 0,
                    "criterion": "c2",
                    "order": 1,
                    "value": "met",
                    "reason": "It abstains.",
                    "confidence": "high",
                    "criterion_at_fault": False,
                    "adjudicator": "a2",
                    "at": AT,
                }
            ],
            "splits": [
                {
                    "collection": "tiny",
                    "seed": 0,
                    "dev_share": 0.5,
                    "created_at": AT,
                    "dev": ["two"],
                    "test": ["one"],
                    "openings": [
                        {"number": 1, "targets": {}, "reason": "To see.", "opened_at": AT}
                    ],
                }
            ],
            "judges": [
                {"name": "stub", "version": 1, "family": "", "digest": judge_key, "created_at": AT}
                | judge
            ],
            "verdicts": [
                {
                    "judge": "stub",
                    "judge_version": 1,
                    "collection": "tiny",
                    "conversation": "one",
                    "respondent": "warm",
                    "sample": 0,
                    "criterion": name,
                    "draw": 0,
                    "criteria_digest": "",
                    "met": name == "c1",
                    "probability": 0.75,
                    "explanation": "It says so.",
                    "quote": "here",
                    "quote_found": True,
                    "created_at": AT,
                }
                for name in ("c1", "c2")
            ],
            "calibrations": [
                {
                    "judge": "stub",
                    "judge_version": 1,
                    "collection": "tiny",
                    "number": 1,
                    **calibration,
                    "labels_digest": labels_digest,
                    "label_events_used": 3,
                    "digest": calibration_digest(
                        judge=judge_key, collection="tiny", labels=labels_digest, **calibration
                    ),
                    "created_at": AT,
                    "decisions": [{"decision": "reject", "reason": "Too few.", "decided_at": AT}],
                }
            ],
        }
    )


def _dimension(slug: str, stance: str | None, position: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "collection": "tiny",
        "slug": slug,
        "name": slug.title(),
        "description": "",
        "position": position,
    }
    return {**row, "stance": stance} if stance else row


def write_lines(folder: Path, lines: Mapping[str, list[bytes]], notice: str | None = None) -> Path:
    """Write tables given as lines without their end, and a manifest that fits them."""
    folder.mkdir(parents=True)
    entries = {}
    for name, rows in lines.items():
        content = b"".join(row + b"\n" for row in rows)
        (folder / f"{name}.jsonl").write_bytes(content)
        entries[name] = (len(rows), hashlib.sha256(content).hexdigest())
    (folder / MANIFEST).write_bytes(manifest_line(entries, notice).encode())
    return folder


def lines_of(tables: Tables) -> dict[str, list[bytes]]:
    """Return the lines of tables, in the order given."""
    return {
        name: [canonical_json(row).encode() for row in rows]
        for name, rows in tables.items()
        if rows
    }


def write_tables(folder: Path, tables: Tables, notice: str | None = None) -> Path:
    """Write tables as a bundle."""
    return write_lines(folder, lines_of(tables), notice)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def database_state() -> dict[str, str]:
    """Return a digest of every row of every table of the product."""
    state = {}
    for model in apps.get_models():
        if model._meta.app_label in {"accounts", "corpus", "annotation", "scoring"}:
            names = [field.attname for field in model._meta.concrete_fields]
            rows = model._default_manager.order_by("pk").values_list(*names)
            state[model._meta.label] = hashlib.sha256(repr(list(rows)).encode()).hexdigest()
    return state
