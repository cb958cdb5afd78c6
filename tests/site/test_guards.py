"""No change that a guard refuses gets past it: not by the ORM, not in bulk, not in raw SQL."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Model

from distressbench_site.accounts import guards
from tests.site.guard_breaks import BREAKS, MORE, Break, Delete, Insert, Update
from tests.site.world import make_world

CASES = [*BREAKS.items(), *MORE]
IDS = [name for name, _ in CASES]
Way = tuple[str, Callable[[], Any]]


@pytest.fixture
def world(db: None) -> SimpleNamespace:
    made = make_world()
    # Deferred foreign keys would keep PostgreSQL from changing triggers in this transaction.
    connection.check_constraints()
    return made


def test_every_guard_has_a_change_that_tries_to_get_past_it():
    names = [guard.name for guard in guards.all_guards()]

    assert set(BREAKS) == set(names)
    assert len(names) == len(set(names))


def test_the_names_of_guards_fit_postgresql_whole():
    names = {guard.name for guard in guards.all_guards()}
    names |= {f"{table}_no_truncate" for table in guards.truncate_guards(guards.all_guards())}

    assert [name for name in names if len(name.encode()) >= 63] == []


def test_every_column_of_a_row_that_never_changes_is_tried():
    for guard in guards.all_guards():
        change = BREAKS[guard.name]
        if not guard.name.endswith("_immutable"):
            continue
        assert isinstance(change, Update)
        named = {part.split('"')[1] for part in guard.when.split("NEW.")[1:] if part[0] == '"'}
        tried = set(change.changes(_AnyWorld()))
        assert tried >= named, guard.name


@pytest.mark.parametrize(("name", "change"), CASES, ids=IDS)
def test_a_guard_refuses_by_itself(world, monkeypatch, name, change):
    [guard] = [guard for guard in guards.all_guards() if guard.name == name]
    row = change.row(world)
    connection.check_constraints()
    monkeypatch.setattr(guards, "all_guards", lambda: [guard])
    guards.install()

    for act in _plain(change, row, world):
        with pytest.raises(DatabaseError) as refusal, transaction.atomic():
            act()
        _assert_refused_by(guard, refusal.value)


@pytest.mark.parametrize(("name", "change"), CASES, ids=IDS)
def test_no_way_leads_past_a_guard(world, name, change):
    row = change.row(world)
    manager = type(row)._base_manager
    before = list(manager.order_by("pk").values())

    for way, act in _ways(change, row, world):
        try:
            with transaction.atomic():
                act()
        except DatabaseError:
            pass
        else:
            pytest.fail(f"{name}: {way} went through")
        assert list(manager.order_by("pk").values()) == before, way


@pytest.mark.parametrize(
    "name",
    [
        "annotation_adjudication_no_update",
        "annotation_adjudication_no_delete",
        "scoring_verdict_insert_matches",
    ],
)
def test_each_of_these_ways_works_where_no_guard_stands(world, name):
    change = BREAKS[name]
    row = change.row(world)
    connection.check_constraints()
    guards.drop()
    manager = type(row)._base_manager
    before = list(manager.order_by("pk").values())

    for way, act in _ways(change, row, world):
        undo = transaction.savepoint()
        act()
        replaced = isinstance(change, Delete) and way == "INSERT OR REPLACE"
        assert replaced or list(manager.order_by("pk").values()) != before, way
        transaction.savepoint_rollback(undo)


@pytest.mark.postgres
@pytest.mark.parametrize("table", guards.truncate_guards(guards.all_guards()))
def test_no_guarded_table_is_emptied_on_postgresql(world, table):
    with pytest.raises(DatabaseError, match="never emptied"), transaction.atomic():
        _execute(f'TRUNCATE "{table}" CASCADE')


@pytest.mark.postgres
def test_a_table_that_others_hang_on_is_not_emptied_with_them(world):
    with pytest.raises(DatabaseError, match="never emptied"), transaction.atomic():
        _execute("TRUNCATE corpus_collection CASCADE")


@pytest.mark.sqlite
@pytest.mark.django_db
def test_rows_that_are_replaced_count_as_deleted_on_sqlite():
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA recursive_triggers").fetchone() == (1,)
        assert cursor.execute("PRAGMA foreign_keys").fetchone() == (1,)


class TestWhatGuardsLetPass:
    def test_a_comment_is_blanked_once_after_submission(self, world):
        text = world.text
        text.comment, text.redacted_at, text.redacted_by = "", world.now, world.user
        text.save()
        world.label.comment = ""
        world.label.save()

    def test_submitted_labels_change_after_reopening(self, world):
        world.submitted.state = "active"
        world.submitted.save()
        world.label.value = "not_met"
        world.label.save()

    def test_work_is_submitted_when_everything_is_answered(self, world):
        type(world.label).objects.create(
            assignment=world.active,
            criterion=world.c2,
            value="cannot_tell",
            reason="outside_competence",
        )
        world.active.state, world.active.submitted_at = "submitted", world.now
        world.active.save()

    def test_free_slots_come_and_go_with_the_overlap(self, world):
        world.free_slot.delete()

    def test_a_draft_is_edited_published_and_retired(self, world):
        world.draft_item.weight = 20
        world.draft_item.save()
        world.draft.author = "somebody"
        world.draft.save()
        type(world.rubric).objects.filter(pk=world.rubric.pk).update(status="retired")
        world.draft.status, world.draft.published_at = "published", world.now
        world.draft.save()

    def test_an_unused_draft_goes_with_its_items(self, world):
        world.draft.delete()

    def test_a_conversation_is_withdrawn_and_moved_to_another_subcategory(self, world):
        world.second.status = "withdrawn"
        world.second.subcategory = world.spare_subcategory
        world.second.save()

    def test_names_and_descriptions_of_dimensions_are_edited(self, world):
        world.dimension.name = "Seeing the danger"
        world.dimension.description = "What it is about."
        world.dimension.save()

    def test_a_call_is_settled(self, world):
        world.call.outcome, world.call.settled_at, world.call.raw = "ok", world.now, "{}"
        world.call.save()

    def test_an_item_of_a_run_gets_its_reply_and_goes_through_its_states(self, world):
        world.second_run_item.reply = world.second_reply
        world.second_run_item.state = "done"
        world.second_run_item.save()
        world.run.status = "done"
        world.run.save()

    def test_a_round_is_closed_and_renamed(self, world):
        world.round.status, world.round.name = "closed", "Another name"
        world.round.save()


def _ways(change: Break, row: Model, world: Any) -> Iterator[Way]:
    """Give each way to make the change, under a name."""
    if isinstance(change, Insert):
        yield from _insert_ways(row)
    elif isinstance(change, Delete):
        yield from _delete_ways(row, orm=not change.raw_only)
    else:
        for changes in _each_change(change, world):
            for way, act in _update_ways(row, changes):
                yield f"{way} of {', '.join(changes)}", act


def _insert_ways(row: Model) -> Iterator[Way]:
    model = type(row)
    yield "save", lambda: _copy(row).save()
    yield "bulk_create", lambda: model._base_manager.bulk_create([_copy(row)])
    yield (
        "bulk_create that ignores conflicts",
        lambda: model._base_manager.bulk_create([_copy(row)], ignore_conflicts=True),
    )
    yield "INSERT", lambda: _insert(row)
    if connection.vendor == "sqlite":
        yield "INSERT OR REPLACE", lambda: _insert(row, "INSERT OR REPLACE")
        yield "INSERT OR IGNORE", lambda: _insert(row, "INSERT OR IGNORE")


def _update_ways(row: Model, changes: dict[str, Any]) -> Iterator[Way]:
    model = type(row)
    rows = model._base_manager.filter(pk=row.pk)
    yield "queryset.update", lambda: rows.update(**changes)
    yield "UPDATE", lambda: _update(row, changes)
    if connection.vendor == "sqlite":
        yield "UPDATE OR REPLACE", lambda: _update(row, changes, "UPDATE OR REPLACE")
        yield "UPDATE OR IGNORE", lambda: _update(row, changes, "UPDATE OR IGNORE")
    if "id" in changes:
        return
    changed = _copy(row, **changes)
    names = [model._meta.get_field(name).name for name in changes]
    yield "save", lambda: _copy(row, **changes).save()
    yield "bulk_update", lambda: model._base_manager.bulk_update([changed], names)
    yield (
        "ON CONFLICT DO UPDATE",
        lambda: _insert(
            changed,
            ending="ON CONFLICT (id) DO UPDATE SET "
            + ", ".join(f'"{column}" = excluded."{column}"' for column in _columns(model, changes)),
        ),
    )
    if connection.vendor == "sqlite":
        yield "INSERT OR REPLACE", lambda: _insert(changed, "INSERT OR REPLACE")


def _delete_ways(row: Model, *, orm: bool) -> Iterator[Way]:
    model = type(row)
    rows = model._base_manager.filter(pk=row.pk)
    if orm:
        yield "delete", lambda: _copy(row).delete()
        yield "queryset.delete", lambda: rows.delete()
    yield "raw delete of the ORM", lambda: rows._raw_delete(rows.db)
    yield "DELETE", lambda: _execute(f'DELETE FROM "{model._meta.db_table}" WHERE id = %s', row.pk)
    if connection.vendor == "sqlite":
        yield "INSERT OR REPLACE", lambda: _insert(row, "INSERT OR REPLACE")


def _plain(change: Break, row: Model, world: Any) -> Iterator[Callable[[], Any]]:
    """Give the change in SQL alone, so that nothing but the guard can refuse it first."""
    if isinstance(change, Insert):
        yield lambda: _insert(row)
    elif isinstance(change, Delete):
        yield lambda: _execute(f'DELETE FROM "{row._meta.db_table}" WHERE id = %s', row.pk)
    else:
        for changes in _each_change(change, world):
            yield lambda changes=changes: _update(row, changes)


def _each_change(change: Update, world: Any) -> Iterator[dict[str, Any]]:
    for name, value in change.changes(world).items():
        yield {name: value}
    together = change.together(world)
    if together:
        yield together


def _copy(row: Model, **changes: Any) -> Model:
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    copied = type(row)(**{**values, **changes})
    copied._state.adding = row._state.adding
    return copied


def _insert(row: Model, verb: str = "INSERT", *, ending: str = "") -> None:
    fields = [f for f in row._meta.concrete_fields if not (f.primary_key and row.pk is None)]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join("%s" for _ in fields)
    _execute(
        f'{verb} INTO "{row._meta.db_table}" ({columns}) VALUES ({marks}) {ending}',
        *(field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields),
    )


def _update(row: Model, changes: dict[str, Any], verb: str = "UPDATE") -> None:
    fields = [row._meta.get_field(name) for name in changes]
    settings = ", ".join(f'"{field.column}" = %s' for field in fields)
    values = [
        field.get_db_prep_save(value, connection)
        for field, value in zip(fields, changes.values(), strict=True)
    ]
    _execute(f'{verb} "{row._meta.db_table}" SET {settings} WHERE id = %s', *values, row.pk)


def _columns(model: type[Model], changes: dict[str, Any]) -> list[str]:
    return [model._meta.get_field(name).column for name in changes]


def _execute(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _assert_refused_by(guard: guards.Guard, error: DatabaseError) -> None:
    if connection.vendor == "postgresql":
        assert error.__cause__.diag.constraint_name == guard.name
    assert guard.message in str(error)


class _AnyWorld:
    """A world in which every name leads somewhere, to ask which columns are tried."""

    pk = 1

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *args: Any) -> Any:
        return self

    def __add__(self, other: Any) -> Any:
        return self
