"""Guards outlive migrations: one that rebuilds a table, one that fails, one that is missing."""

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from django.core import checks
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader

from distressbench_site.accounts import guards
from distressbench_site.accounts.models import AuditEvent
from scoring.models import Judge

pytestmark = pytest.mark.django_db(transaction=True)

REBUILD = """
from django.db import migrations, models

seen = []


def look(apps, schema_editor):
    from distressbench_site.accounts import guards

    seen.append(guards.installed())
    {fault}


class Migration(migrations.Migration):
    dependencies = [("scoring", "{before}")]
    operations = [
        migrations.AlterField("judge", "family", models.CharField(max_length=65, blank=True)),
        migrations.RunPython(look, migrations.RunPython.noop),
    ]
"""


@pytest.fixture
def add_migration(tmp_path: Path, settings, monkeypatch) -> Iterator:
    """Return a maker of one more migration of scoring, undone at the end."""
    [before] = [
        name for app, name in MigrationLoader(connection).graph.leaf_nodes() if app == "scoring"
    ]
    package = f"more_scoring_migrations_{secrets.token_hex(4)}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from scoring import migrations\n\n__path__ = [*__path__, *migrations.__path__]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def add(fault: str = "") -> str:
        text = dedent(REBUILD).format(before=before, fault=fault)
        (folder / "9999_rebuild_judge.py").write_text(text)
        settings.MIGRATION_MODULES = {"scoring": package}
        return f"{package}.9999_rebuild_judge"

    yield add
    call_command("migrate", "scoring", before, verbosity=0)


def assert_guarded() -> None:
    assert guards.installed() == guards.expected()
    judge = Judge.objects.create(name="calm", version=1, digest="a" * 64)
    event = AuditEvent.objects.create(action="looked")
    for act in (
        lambda: Judge.objects.filter(pk=judge.pk).update(prompt="Be kind."),
        lambda: judge.delete(),
        lambda: Judge.objects.bulk_update([judge], ["prompt"]),
        lambda: _execute("UPDATE scoring_judge SET prompt = 'Be kind.'"),
        lambda: _execute("DELETE FROM scoring_judge"),
        lambda: event.delete(),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            act()
    with guards.lifted():
        Judge.objects.all()._raw_delete("default")
        AuditEvent.objects.all()._raw_delete("default")


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.sqlite
def test_rebuilding_a_table_drops_its_triggers_on_sqlite_which_is_why_they_come_back():
    field = AuditEvent._meta.get_field("target")
    with connection.schema_editor() as editor:
        editor._remake_table(AuditEvent, alter_fields=[(field, field)])

    gone = guards.expected() - guards.installed()
    assert gone == {"accounts_auditevent_no_update", "accounts_auditevent_no_delete"}
    call_command("migrate", verbosity=0)
    assert_guarded()


def test_guards_stand_again_after_a_migration_that_rebuilds_a_table(add_migration):
    name = add_migration()

    call_command("migrate", verbosity=0)

    assert sys.modules[name].seen == [set()]
    assert_guarded()


def test_guards_stand_after_a_migration_that_fails(add_migration):
    add_migration(fault='raise RuntimeError("half way")')

    with pytest.raises(RuntimeError, match="half way"):
        call_command("migrate", verbosity=0)

    assert_guarded()


def test_migrating_back_and_forth_leaves_the_guards_standing():
    call_command("migrate", "scoring", "zero", verbosity=0)
    assert {name for name in guards.installed() if name.startswith("scoring_")} == set()
    assert {name for name in guards.expected() if name.startswith("corpus_")} <= guards.installed()

    call_command("migrate", verbosity=0)
    assert_guarded()


def test_lifted_guards_come_back(db):
    with guards.lifted():
        assert guards.installed() == set()
        with guards.lifted():
            pass
        assert guards.installed() == set()
    assert_guarded()


def test_lifted_guards_come_back_after_a_fault():
    with pytest.raises(RuntimeError, match="half way"), guards.lifted(), guards.lifted():
        raise RuntimeError("half way")
    assert_guarded()


def test_lifted_guards_come_back_after_a_fault_of_the_database():
    with pytest.raises(DatabaseError, match="nowhere"), guards.lifted():
        _execute("SELECT * FROM nowhere")
    assert_guarded()


def test_lifted_guards_come_back_when_the_transaction_around_them_breaks():
    with (
        pytest.raises(DatabaseError, match="nowhere"),
        transaction.atomic(),
        guards.lifted(),
    ):
        _execute("SELECT * FROM nowhere")
    assert_guarded()


def test_the_system_check_names_every_missing_guard():
    def problems() -> list[str]:
        return [m.msg for m in checks.run_checks(databases=["default"]) if m.id == "accounts.E001"]

    assert problems() == []
    table = ' ON "corpus_reply"' if connection.vendor == "postgresql" else ""
    _execute(f'DROP TRIGGER "corpus_reply_immutable"{table}')
    _execute(f'DROP TRIGGER "corpus_reply_undeletable"{table}')
    try:
        assert problems() == [
            "The database lacks guards: corpus_reply_immutable, corpus_reply_undeletable"
        ]
    finally:
        call_command("migrate", verbosity=0)
    assert problems() == []


@pytest.mark.postgres
def test_the_system_check_names_a_guard_that_is_switched_off_and_one_against_truncate():
    _execute('ALTER TABLE corpus_reply DISABLE TRIGGER "corpus_reply_immutable"')
    _execute('DROP TRIGGER "corpus_reply_no_truncate" ON corpus_reply')
    try:
        [problem] = [
            m.msg for m in checks.run_checks(databases=["default"]) if m.id == "accounts.E001"
        ]
    finally:
        call_command("migrate", verbosity=0)
    assert problem.endswith("corpus_reply_immutable, corpus_reply_no_truncate")


def test_migrate_repairs_an_installation_that_lacks_a_guard(make_program):
    program = make_program()
    program.manage("migrate", "--verbosity", "0")
    program.manage("check", "--database", "default")
    drop = (
        "from django.db import connection; table = ' ON scoring_judge' if connection.vendor =="
        " 'postgresql' else ''; connection.cursor().execute("
        "'DROP TRIGGER scoring_judge_no_update' + table)"
    )
    program.manage("shell", "--command", drop)
    refused = program.manage("check", "--database", "default", check=False)
    assert refused.returncode != 0
    assert "scoring_judge_no_update" in refused.stderr

    program.manage("migrate", "--verbosity", "0")

    program.manage("check", "--database", "default")
