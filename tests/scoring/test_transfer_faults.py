"""A bundle with faults is refused whole, and every fault is named with its place."""

import json
import zipfile
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from corpus.schema import canonical_json
from scoring.transfer import ImportRefused, import_source, open_source
from tests.scoring.bundles import (
    database_state,
    lines_of,
    small_tables,
    write_lines,
    write_tables,
)

pytestmark = pytest.mark.django_db


def faults_of(path):
    """Import, and return what was refused; the database must be as before."""
    before = database_state()
    with pytest.raises(ImportRefused) as refused, open_source(path) as source:
        import_source(source)
    assert database_state() == before
    return refused.value.faults


def places(faults):
    """Return where faults are, without what they say."""
    return [(fault.file, fault.line, fault.field) for fault in faults]


# Table, row, what changes in it, the field that is named, words of the reason.
CHANGED = [
    ("collections", 0, {"slug": "with space"}, "slug", "letters, digits"),
    ("collections", 0, {"name": ""}, "name", "one line"),
    ("collections", 0, {"source": {"bundle_notice": "x"}}, "", "reserved"),
    ("dimensions", 0, {"stance": "maybe"}, "stance", "one of: 'act', 'withhold'"),
    ("dimensions", 0, {"position": -1}, "position", "at least 0"),
    ("dimensions", 0, {"position": "1"}, "position", "whole number"),
    ("dimensions", 0, {"collection": "elsewhere"}, "collection", "no such collection"),
    ("conversations", 0, {"turns": []}, "turns", "at least one turn"),
    ("conversations", 0, {"turns": [{"role": "assistant", "text": "Hm."}]}, "turns", "user's"),
    ("conversations", 0, {"turns": [{"role": "user", "text": " "}]}, "turns[0].text", "empty"),
    ("conversations", 0, {"turns": [{"role": "system", "text": "x"}]}, "turns[0].role", "one of"),
    ("conversations", 0, {"turns": "hello"}, "turns", "list"),
    ("conversations", 0, {"locale": "English, please"}, "locale", "language tag"),
    ("conversations", 0, {"status": "lost"}, "status", "one of"),
    ("conversations", 0, {"subcategory": "day"}, "subcategory", "no such subcategory"),
    ("conversations", 0, {"supersedes": "three"}, "supersedes", "no such conversation"),
    ("conversations", 0, {"supersedes": "one"}, "", "cannot supersede itself"),
    ("conversations", 0, {"key": "../one"}, "key", "letters, digits"),
    ("conversations", 0, {"key": "k" * 129}, "key", "longer than 128"),
    ("criteria", 0, {"text": "\n"}, "text", "empty"),
    ("criteria", 0, {"conversation": "three"}, "conversation", "no such conversation"),
    ("criteria", 0, {"same_meaning_as": "c2"}, "", "needs a reason"),
    ("criteria", 0, {"same_meaning_as": "c9", "reason": "x"}, "same_meaning_as", "no such"),
    ("rubrics", 0, {"version": 0}, "version", "at least 1"),
    ("rubrics", 0, {"status": "draft"}, "", "published_at"),
    ("rubrics", 0, {"published_at": "2026-11-02"}, "published_at", "time in UTC"),
    ("rubrics", 0, {"published_at": "2026-02-30T09:00:00.000000Z"}, "published_at", "time in UTC"),
    ("rubrics", 0, {"items": []}, "", "at least one item"),
    ("replies", 0, {"turns": ["a", "b"]}, "turns", "1 places"),
    ("replies", 0, {"turns": [""]}, "", "not answered"),
    ("replies", 0, {"outcome": "fine"}, "outcome", "one of"),
    ("replies", 0, {"respondent": "nobody"}, "respondent", "no such respondent"),
    ("replies", 0, {"replied_on": "1 May"}, "replied_on", "day such as"),
    ("rounds", 0, {"overlap": 0}, "overlap", "at least 1"),
    ("rounds", 0, {"overlap": 11}, "overlap", "at most 10"),
    ("rounds", 0, {"members": [{"annotator": "a9", "active": True}]}, "members[0].annotator", "no"),
    ("assignments", 0, {"slot": 3}, "slot", "no such slot"),
    ("assignments", 0, {"slot": None}, "", "holds a slot"),
    ("assignments", 0, {"annotator": "a9"}, "annotator", "no such annotator"),
    ("assignments", 0, {"state": "active"}, "", "lease_until"),
    ("label_events", 0, {"value": "yes"}, "value", "one of"),
    ("label_events", 0, {"order": 2}, "order", "here 1 is next"),
    ("label_events", 1, {"seq": 1}, "seq", "sent this number already"),
    ("label_events", 1, {"comment": "Another."}, "", "not the SHA-256"),
    ("label_events", 0, {"criterion": "c7"}, "criterion", "not asked"),
    ("labels", 0, {"value": "not_met"}, "value", "label_events add up to"),
    ("labels", 0, {"reason": "reply_ambiguous"}, "", "only cannot_tell"),
    (
        "labels",
        0,
        {"quotes": [{"turn": 0, "start": 0, "text": "never said"}]},
        "quotes[0].text",
        "does not say this",
    ),
    ("labels", 0, {"quotes": [{"turn": 4, "start": 0, "text": "x"}]}, "quotes[0].turn", "1 texts"),
    ("adjudications", 0, {"order": 2}, "order", "here 1 is next"),
    ("adjudications", 0, {"criterion": "c7"}, "criterion", "not asked"),
    ("splits", 0, {"dev": ["one"]}, "", "in dev and in test"),
    ("splits", 0, {"dev": ["three"]}, "dev[0]", "no such conversation"),
    ("splits", 0, {"dev_share": 1}, "dev_share", "less than 1"),
    ("judges", 0, {"prompt": "Another."}, "digest", "not the digest"),
    ("verdicts", 0, {"met": 1}, "met", "true or false"),
    ("verdicts", 0, {"probability": 1.5}, "probability", "at most 1"),
    ("verdicts", 0, {"judge_version": 2}, "judge", "no such judge"),
    ("verdicts", 0, {"criteria_digest": "0" * 64}, "criteria_digest", "one criterion at a time"),
    ("calibrations", 0, {"rounds": ["Second"]}, "rounds[0]", "no such round"),
    ("calibrations", 0, {"label_events_used": -1}, "label_events_used", "at least 0"),
    ("calibrations", 0, {"metrics": {}}, "digest", "not the digest"),
]


@pytest.mark.parametrize(("table", "number", "change", "field", "reason"), CHANGED)
def test_a_wrong_row_is_named(tmp_path, table, number, change, field, reason):
    tables = small_tables()
    tables[table][number] |= change
    found = faults_of(write_tables(tmp_path / "given", tables))
    at = [f for f in found if (f.file, f.line, f.field) == (f"{table}.jsonl", number + 1, field)]
    assert any(reason in fault.reason for fault in at), found


@pytest.mark.parametrize("table", sorted(small_tables()))
def test_a_missing_an_unknown_and_a_mistyped_field_are_named_in_every_table(tmp_path, table):
    tables = small_tables()
    row = tables[table][0]
    last = sorted(row)[-1]
    gone = {name: value for name, value in row.items() if name != last}
    tables[table] = [gone, {**row, "colour": 1}, {**row, last: [[]]}]
    found = faults_of(write_tables(tmp_path / "given", tables))
    named = {(f.line, f.field.split("[")[0]) for f in found if f.file == f"{table}.jsonl"}
    assert {(1, last), (2, "colour"), (3, last)} <= named


@pytest.mark.parametrize("table", sorted(small_tables()))
def test_a_row_that_stands_twice_is_named_with_the_first(tmp_path, table):
    tables = small_tables()
    tables[table].append(tables[table][0])
    found = faults_of(write_tables(tmp_path / "given", tables))
    line = len(tables[table])
    assert [(f.file, f.line) for f in found] == [(f"{table}.jsonl", line)]
    assert found[0].reason.startswith("line 1 has this key already")


# A line as bytes, words of the reason.
LINES = [
    (b"", "empty"),
    (b"   ", "empty"),
    (b"not json", "not JSON"),
    (b'{"slug":"tiny"', "not JSON"),
    (b"[]", "must be a JSON object"),
    (b'"text"', "must be a JSON object"),
    (b'{"slug":"a","slug":"b"}', "stands twice"),
    (b'{"slug":NaN}', "not a JSON number"),
    (b'{"slug":Infinity}', "not a JSON number"),
    (b'{"slug":1e999}', "too large"),
    (b'{"slug":-0.0}', "whole number"),
    (b'{"slug":' + b"9" * 5000 + b"}", "too many digits"),
    (b'{"slug":"\xff"}', "not valid UTF-8"),
    (b'{"slug":"\xed\xa0\x80"}', "not valid UTF-8"),
    (b'{"slug":"a\\u0000b"}', "NUL"),
    (b'{"slug":"a\\ud800b"}', "surrogate"),
    (b'{"slug":' + b"[" * 100 + b"]" * 100 + b"}", "nested deeper"),
    (b'{"slug":' + b"[" * 100_000, "nested"),
    (b'{"slug":"tiny"}\r', "CR LF"),
]


@pytest.mark.parametrize(("line", "reason"), LINES)
def test_a_line_that_is_no_row_is_named(tmp_path, line, reason):
    lines = lines_of(small_tables())
    lines["collections"].append(line)
    found = faults_of(write_lines(tmp_path / "given", lines))
    assert any(f.line == 2 and reason in f.reason for f in found), found
    assert all(f.file == "collections.jsonl" for f in found), "references are not to blame"


def test_a_byte_order_mark_is_named(tmp_path):
    lines = lines_of(small_tables())
    lines["collections"][0] = b"\xef\xbb\xbf" + lines["collections"][0]
    found = faults_of(write_lines(tmp_path / "given", lines))
    assert [(f.line, "byte order mark" in f.reason) for f in found] == [(1, True)]


def test_all_faults_of_all_tables_come_at_once(tmp_path):
    lines = lines_of(small_tables())
    expected = set()
    for table in lines:
        lines[table] += [b"{}", b"broken"]
        expected |= {
            (f"{table}.jsonl", len(lines[table])),
            (f"{table}.jsonl", len(lines[table]) - 1),
        }
    found = faults_of(write_lines(tmp_path / "given", lines))
    assert expected == {(f.file, f.line) for f in found}


def test_other_content_under_a_stored_key_is_refused(tmp_path):
    with open_source(write_tables(tmp_path / "given", small_tables())) as source:
        import_source(source)
    changes = {
        "conversations": {"locale": "en-US"},
        "criteria": {"text": "Says another thing."},
        "respondents": {"name": "Cold"},
        "replies": {"turns": ["I am not here."]},
        "rounds": {"guidelines": "Skim."},
        "assignments": {"active_seconds": 61},
        "label_events": {"client": "y"},
        "labels": {"value": "not_met"},
        "adjudications": {"reason": "Because."},
        "splits": {"seed": 1},
        "verdicts": {"met": False},
        "calibrations": {"label_events_used": 4},
    }
    tables = {name: [{**small_tables()[name][0], **change}] for name, change in changes.items()}
    found = faults_of(write_tables(tmp_path / "other", tables))
    assert {(f.file, f.line, f.field) for f in found} == {
        (f"{name}.jsonl", 1, next(iter(change))) for name, change in changes.items()
    }
    assert all("other content under this key" in f.reason for f in found)


def test_submitted_work_needs_every_answer(tmp_path):
    tables = small_tables()
    del tables["labels"][1], tables["label_events"][2]
    found = faults_of(write_tables(tmp_path / "given", tables))
    assert places(found) == [("assignments.jsonl", 1, "state")]
    assert "1 of 2 criteria" in found[0].reason


def test_an_event_that_no_label_shows_is_a_fault(tmp_path):
    tables = small_tables()
    tables["assignments"][0] |= {"state": "lapsed", "slot": None}
    del tables["labels"][1]
    found = faults_of(write_tables(tmp_path / "given", tables))
    assert [f.field for f in found] == ["criterion"]


def test_two_people_cannot_hold_one_slot(tmp_path):
    tables = small_tables()
    tables["assignments"].append({**tables["assignments"][0], "annotator": "a2"})
    found = faults_of(write_tables(tmp_path / "given", tables))
    assert ("assignments.jsonl", 2, "slot") in places(found)


def test_circles_are_named(tmp_path):
    tables = small_tables()
    tables["conversations"][0]["supersedes"] = "two"
    tables["conversations"][1]["supersedes"] = "one"
    tables["criteria"][0] |= {"same_meaning_as": "c2", "reason": "x"}
    tables["criteria"][1] |= {"same_meaning_as": "c1", "reason": "x"}
    found = faults_of(write_tables(tmp_path / "given", tables))
    assert {f.file for f in found if "circle" in f.reason} == {
        "conversations.jsonl",
        "criteria.jsonl",
    }


def test_scores_that_do_not_follow_from_the_rest_are_refused(tmp_path):
    with open_source(write_tables(tmp_path / "given", small_tables())) as source:
        import_source(source)
    call_command("export_bundle", tmp_path / "out", collection=["tiny"], stdout=StringIO())
    row = json.loads((tmp_path / "out" / "scores.jsonl").read_bytes())
    row["payload"]["rows"][0]["score"]["value"] = 0.9
    found = faults_of(write_tables(tmp_path / "other", {"scores": [row]}))
    assert places(found) == [("scores.jsonl", 1, "payload.rows[0].score.value")]


# What is done to a folder, the file that is named, words of the reason.
def _cut(folder):
    path = folder / "replies.jsonl"
    path.write_bytes(path.read_bytes()[:-40])


def _manifest(folder, change):
    path = folder / "manifest.json"
    path.write_text(canonical_json(json.loads(path.read_text()) | change) + "\n")


FOLDERS = {
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "manifest.json", "missing"),
    "another format": (lambda f: _manifest(f, {"format": "x"}), "manifest.json", "one of"),
    "a later version": (lambda f: _manifest(f, {"schema_version": 2}), "manifest.json", "one of"),
    "no json": (lambda f: (f / "manifest.json").write_text("{"), "manifest.json", "not JSON"),
    "a file gone": (lambda f: (f / "replies.jsonl").unlink(), "replies.jsonl", "is missing"),
    "a file cut": (_cut, "replies.jsonl", "another SHA-256"),
    "a stranger": (lambda f: (f / "notes.txt").write_text("x"), "notes.txt", "no such file"),
    "unlisted": (lambda f: _manifest(f, {"tables": {}}), "replies.jsonl", "does not list"),
}


@pytest.mark.parametrize(("change", "file", "reason"), FOLDERS.values(), ids=FOLDERS)
def test_a_folder_that_is_not_what_its_manifest_says_is_refused(tmp_path, change, file, reason):
    folder = write_tables(tmp_path / "given", small_tables())
    change(folder)
    assert any(f.file == file and reason in f.reason for f in faults_of(folder))


def _symlink():
    info = zipfile.ZipInfo("manifest.json")
    info.create_system, info.external_attr = 3, 0o120777 << 16
    return info


ZIPPED = [
    ("../outside.jsonl", "no folders"),
    ("/tmp/outside.jsonl", "no folders"),
    ("folder/manifest.json", "no folders"),
    ("a\\b.jsonl", "no folders"),
    ("C:outside.jsonl", "no folders"),
    (_symlink(), "no plain file"),
]


@pytest.mark.parametrize(("name", "reason"), ZIPPED)
def test_a_zip_that_reaches_elsewhere_is_refused(tmp_path, name, reason):
    path = tmp_path / "in" / "given.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "{}")
    assert any(reason in f.reason for f in faults_of(path))
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


def test_a_zip_bomb_and_a_cut_zip_are_refused(tmp_path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("replies.jsonl", b"\0" * (40 * 1024**2))
    assert any("far more than its size" in f.reason for f in faults_of(bomb))
    cut = tmp_path / "cut.zip"
    cut.write_bytes(bomb.read_bytes()[:-30])
    assert any("cannot be read" in f.reason for f in faults_of(cut))


def test_the_command_prints_every_fault_in_a_table_and_fails(tmp_path):
    tables = small_tables()
    tables["replies"][0]["outcome"] = "fine"
    tables["labels"][1]["reason"] = "tired"
    given = write_tables(tmp_path / "given", tables)
    out = StringIO()
    with pytest.raises(CommandError, match=r"2 faults in given\. Nothing was imported\."):
        call_command("import_corpus", given, stdout=out)
    text = out.getvalue()
    assert all(word in text for word in ("File", "Line", "Field", "Value", "Reason"))
    assert "replies.jsonl" in text
    assert "fine" in text
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("import_corpus", given, json=True, stdout=out)
    assert [f["line"] for f in json.loads(out.getvalue())["faults"]] == [1, 2]


def test_a_value_is_shown_without_what_would_harm_a_terminal(tmp_path):
    tables = small_tables()
    tables["replies"][0]["outcome"] = "\x1b[2J\u202e" + "x" * 500
    found = faults_of(write_tables(tmp_path / "given", tables))
    assert found[0].value.startswith("\\x1b[2J\\u202e")
    assert len(found[0].value) < 90


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\n\xff\xfe", b"PK\x03\x04nothing", b"hello\n"])
def test_a_file_that_is_something_else_is_refused_by_name(tmp_path, content):
    path = tmp_path / "thing.jsonl"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=r"thing\.jsonl"):
        call_command("import_corpus", path, stdout=StringIO())


def test_a_path_that_is_not_there_is_said_plainly(tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_corpus", tmp_path / "nothing.zip")
