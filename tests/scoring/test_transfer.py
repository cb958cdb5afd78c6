"""Bundles go in and come out the same, and a second import changes nothing."""

import json
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from annotation.models import LabelEvent
from corpus.models import Collection, Conversation, Criterion, Rubric
from distressbench_site.accounts.models import AuditEvent
from scoring.transfer import export_bundle, import_source, open_source
from tests.program import ROOT
from tests.scoring.bundles import (
    AT,
    contents,
    database_state,
    lines_of,
    small_tables,
    write_lines,
    write_tables,
)

SAMPLE = ROOT / "fixtures" / "sample"
SAMPLE_COLLECTIONS = ("distressbench-sample", "distressbench-sample-annex")
pytestmark = pytest.mark.django_db


def run_import(path, **options):
    """Import as the command does."""
    with open_source(path) as source:
        return import_source(source, **options)


def test_the_sample_comes_out_as_it_went_in(tmp_path):
    run_import(SAMPLE)
    export_bundle(tmp_path / "out", collections=SAMPLE_COLLECTIONS)
    assert contents(tmp_path / "out") == contents(SAMPLE)


def test_every_table_comes_out_as_it_went_in(tmp_path):
    given = write_tables(tmp_path / "given", small_tables(), "Synthetic.")
    run_import(given)
    export_bundle(tmp_path / "out", collections=("tiny",))
    out = contents(tmp_path / "out")
    assert json.loads(out.pop("scores.jsonl"))["payload"]["approved"] is False
    manifest = json.loads(out.pop("manifest.json"))
    assert manifest.pop("notice") == "Synthetic."
    del manifest["tables"]["scores"]
    expected = contents(given)
    assert manifest["tables"] == json.loads(expected.pop("manifest.json"))["tables"]
    assert out == expected


def test_a_second_import_changes_nothing(tmp_path):
    run_import(write_tables(tmp_path / "given", small_tables()))
    export_bundle(tmp_path / "whole", collections=("tiny",))
    run_import(tmp_path / "whole")
    before = database_state()
    outcome = run_import(tmp_path / "whole")
    assert not outcome.anything
    assert outcome.changes["label_events"].unchanged == 3
    assert database_state() == before


def test_a_dry_run_says_what_it_would_do_and_takes_it_back(tmp_path):
    given = write_tables(tmp_path / "given", small_tables())
    before = database_state()
    outcome = run_import(given, dry_run=True)
    assert outcome.changes["labels"].new == 2
    assert database_state() == before


def test_a_zip_is_the_same_as_its_folder_and_has_the_same_bytes_twice(tmp_path):
    run_import(SAMPLE)
    for name in ("a.zip", "b.zip"):
        export_bundle(tmp_path / name, collections=SAMPLE_COLLECTIONS)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == contents(SAMPLE)
    assert not run_import(tmp_path / "a.zip").anything


def test_rows_in_any_order_give_the_same_export(tmp_path):
    tables = small_tables()
    tables["conversations"][0]["supersedes"] = "two"
    tables["criteria"][0] |= {"same_meaning_as": "c2", "reason": "A typing mistake."}
    lines = lines_of(tables)
    for name in set(lines) - {"label_events"}:
        lines[name].reverse()
    run_import(write_lines(tmp_path / "given", lines))
    export_bundle(tmp_path / "out", collections=("tiny",))
    for name in set(lines) - {"splits"}:
        found = (tmp_path / "out" / f"{name}.jsonl").read_bytes().splitlines()
        assert found == lines_of(tables)[name]


def test_labels_without_a_log_get_one(tmp_path):
    tables = small_tables()
    del tables["label_events"]
    run_import(write_tables(tmp_path / "given", tables))
    assert set(LabelEvent.objects.values_list("client", flat=True)) == {"import"}
    call_command("verify_labels", stdout=StringIO())
    export_bundle(tmp_path / "out", collections=("tiny",))
    assert not run_import(tmp_path / "out").anything


def test_a_redacted_comment_stays_redacted(tmp_path):
    tables = small_tables()
    tables["label_events"][1]["comment"] = None
    tables["labels"][0]["comment"] = ""
    run_import(write_tables(tmp_path / "given", tables))
    export_bundle(tmp_path / "out", collections=("tiny",))
    assert contents(tmp_path / "out")["label_events.jsonl"] == b"".join(
        line + b"\n" for line in lines_of(tables)["label_events"]
    )


def test_a_changed_rubric_becomes_a_draft(tmp_path):
    run_import(write_tables(tmp_path / "given", small_tables()))
    tables = {name: small_tables()[name] for name in ("rubrics",)}
    tables["rubrics"][0]["items"][0]["weight"] = 9
    changed = write_tables(tmp_path / "changed", tables)
    outcome = run_import(changed)
    assert (outcome.changes["rubrics"].new, outcome.changes["rubrics"].drafts) == (1, 1)
    found = Rubric.objects.filter(conversation__key="one", conversation__collection__slug="tiny")
    assert sorted(found.values_list("version", "status")) == [(1, "published"), (2, "draft")]
    assert not run_import(changed).anything


def test_more_rows_join_what_is_there(tmp_path):
    run_import(write_tables(tmp_path / "given", small_tables()))
    tables = {
        "conversations": [{**small_tables()["conversations"][0], "key": "three"}],
        "criteria": [{**small_tables()["criteria"][0], "key": "c3"}],
    }
    run_import(write_tables(tmp_path / "more", tables))
    assert Conversation.objects.filter(collection__slug="tiny").count() == 3
    assert Criterion.objects.filter(key="c3", conversation__key="one").exists()


def test_an_import_is_one_line_of_the_audit_log(tmp_path):
    run_import(write_tables(tmp_path / "given", small_tables()))
    event = AuditEvent.objects.get(action="corpus imported")
    assert event.target == "given"
    assert event.detail["replies"] == 2


def test_an_export_never_writes_over_anything(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    (tmp_path / "file.zip").write_text("keep")
    for name in ("full", "file.zip"):
        with pytest.raises(CommandError, match="there already"):
            call_command("export_bundle", tmp_path / name)
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.zip", "full"]


def test_an_export_of_an_unknown_collection_names_those_there_are(tmp_path):
    with pytest.raises(CommandError, match="no collection nowhere; there are distressbench"):
        call_command("export_bundle", tmp_path / "out", collection=["nowhere"])
    assert not (tmp_path / "out").exists()


def test_the_notice_of_a_bundle_stays_with_its_collections(tmp_path):
    run_import(write_tables(tmp_path / "given", small_tables(), "Synthetic, not of clinicians."))
    assert Collection.objects.get(slug="tiny").source["bundle_notice"].startswith("Synthetic")


def test_times_keep_their_microseconds(tmp_path):
    tables = small_tables()
    tables["replies"][0]["created_at"] = AT.replace(".000000", ".000001")
    run_import(write_tables(tmp_path / "given", tables))
    export_bundle(tmp_path / "out", collections=("tiny",))
    assert b".000001Z" in contents(tmp_path / "out")["replies.jsonl"]


@pytest.mark.no_database
def test_the_sample_is_marked_as_synthetic_everywhere():
    manifest = json.loads((SAMPLE / "manifest.json").read_text(encoding="utf-8"))
    assert "not clinician-authored" in manifest["notice"]
    for table in ("conversations", "replies"):
        for line in (SAMPLE / f"{table}.jsonl").read_text(encoding="utf-8").splitlines():
            assert "synthetic" in line.lower(), line[:200]


def test_the_scores_of_a_bundle_are_computed_again(tmp_path):
    run_import(write_tables(tmp_path / "given", small_tables()))
    export_bundle(tmp_path / "whole", collections=("tiny",))
    path: Path = tmp_path / "whole" / "scores.jsonl"
    row = json.loads(path.read_text(encoding="utf-8"))
    assert row["payload"]["rows"][0]["score"]["value"] == 0.625
