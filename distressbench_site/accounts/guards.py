"""Rules that the database itself keeps, on SQLite and PostgreSQL alike.

Each app lists its guards in `<app>/guards.py` as `GUARDS`. A guard is a trigger that refuses a
change, however it is made: through the ORM, in bulk, or in raw SQL. They are installed after each
`migrate` (SQLite drops a table's triggers when a migration rebuilds it) and lifted by
`lifted()` alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

Event = Literal["insert", "update", "delete"]

# `IS DISTINCT FROM` is spelled differently on old SQLite; `{differs}` stands for either.
_DIFFERS = {"sqlite": "IS NOT", "postgresql": "IS DISTINCT FROM"}
_TRUE = {"sqlite": "1", "postgresql": "true"}

_GUARDED_APPS = ("accounts", "corpus", "annotation", "scoring")

_depth = threading.local()


@dataclass(frozen=True)
class Guard:
    """One refused change: event on a table, refused when `when` holds, with a readable message.

    `when` is SQL over NEW and OLD, the same text for both engines; `{differs}` is replaced by the
    engine's null-safe "is different". Empty means always.
    """

    name: str
    table: str
    event: Event
    message: str
    when: str = ""

    def sqlite(self) -> list[str]:
        """Return the statements that create the guard on SQLite."""
        when = f" WHEN {self._condition('sqlite')}" if self.when else ""
        return [
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event.upper()} ON "{self.table}" '
            f"FOR EACH ROW{when} BEGIN SELECT RAISE(ABORT, '{_quoted(self.message)}'); END"
        ]

    def postgresql(self) -> list[str]:
        """Return the statements that create the guard on PostgreSQL."""
        condition = self._condition("postgresql") or "true"
        row = "OLD" if self.event == "delete" else "NEW"
        return [
            f'CREATE OR REPLACE FUNCTION "{self.name}"() RETURNS trigger LANGUAGE plpgsql AS '
            f"$guard$ BEGIN IF {condition} THEN RAISE EXCEPTION '{_quoted(self.message)}' "
            f"USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = '{self.name}'; "
            f"END IF; RETURN {row}; END $guard$",
            f'CREATE TRIGGER "{self.name}" BEFORE {self.event.upper()} ON "{self.table}" '
            f'FOR EACH ROW EXECUTE FUNCTION "{self.name}"()',
        ]

    def _condition(self, vendor: str) -> str:
        return self.when.replace("{differs}", _DIFFERS[vendor]).replace("{true}", _TRUE[vendor])


def immutable(table: str, columns: list[str], what: str, when: str = "") -> Guard:
    """Refuse an update that changes one of the columns."""
    changed = " OR ".join(f'NEW."{c}" {{differs}} OLD."{c}"' for c in columns)
    condition = f"({changed}) AND ({when})" if when else changed
    return Guard(f"{table}_immutable", table, "update", f"{what} never changes", condition)


def undeletable(table: str, what: str, when: str = "") -> Guard:
    """Refuse to delete rows."""
    return Guard(f"{table}_undeletable", table, "delete", f"{what} is never deleted", when)


def append_only(table: str, what: str) -> list[Guard]:
    """Refuse every update and delete."""
    return [
        Guard(f"{table}_no_update", table, "update", f"{what} is append-only"),
        Guard(f"{table}_no_delete", table, "delete", f"{what} is append-only"),
    ]


def all_guards() -> list[Guard]:
    """Return the guards of all apps, in the order of the apps."""
    found: list[Guard] = []
    for config in apps.get_app_configs():
        name = f"{config.name}.guards"
        if config.label in _GUARDED_APPS and find_spec(name):
            found.extend(import_module(name).GUARDS)
    return found


def truncate_guards(guards: list[Guard]) -> list[str]:
    """Return the tables that PostgreSQL must also protect from TRUNCATE."""
    return sorted({g.table for g in guards if g.event == "delete"})


def install(using: str = DEFAULT_DB_ALIAS) -> None:
    """Create every guard whose table exists; guards that stand already are made anew."""
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        _drop(connection, cursor)
        tables = set(connection.introspection.table_names(cursor))
        for guard in all_guards():
            if guard.table not in tables:
                continue
            for statement in getattr(guard, connection.vendor)():
                cursor.execute(statement, None)
        if connection.vendor == "postgresql":
            for table in truncate_guards(all_guards()):
                if table in tables:
                    for statement in _no_truncate(table):
                        cursor.execute(statement, None)


def drop(using: str = DEFAULT_DB_ALIAS) -> None:
    """Remove every guard."""
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        _drop(connection, cursor)


@contextmanager
def lifted(using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Lift the guards for a migration or a test flush, and put them back whatever happens."""
    depth: dict[str, int] = _depth.__dict__.setdefault("by_alias", {})
    depth[using] = depth.get(using, 0) + 1
    try:
        if depth[using] == 1:
            drop(using)
        yield
    finally:
        depth[using] -= 1
        if depth[using] == 0:
            _put_back(using)


def installed(using: str = DEFAULT_DB_ALIAS) -> set[str]:
    """Return the names of the guards that stand in the database."""
    connection = connections[using]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'", None)
        else:
            cursor.execute(
                "SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' "
                "AND n.nspname = ANY (current_schemas(false))",
                None,
            )
        return {row[0] for row in cursor.fetchall()}


def expected(using: str = DEFAULT_DB_ALIAS) -> set[str]:
    """Return the names of the guards that should stand in the database."""
    guards = all_guards()
    names = {g.name for g in guards}
    if connections[using].vendor == "postgresql":
        names |= {f"{table}_no_truncate" for table in truncate_guards(guards)}
    return names


def install_after_migrate(sender: Any, using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Install the guards when the last app of ours has migrated."""
    install(using)


def drop_before_migrate(sender: Any, using: str = DEFAULT_DB_ALIAS, **_: Any) -> None:
    """Drop the guards before a migration: SQLite cannot rename a table that a trigger names."""
    drop(using)


def _put_back(using: str) -> None:
    try:
        install(using)
    except DatabaseError:
        if not connections[using].in_atomic_block:
            raise
        # The transaction that lifted them is broken; rolling it back is what brings them back.
        connections[using].set_rollback(True)


def _no_truncate(table: str) -> list[str]:
    name = f"{table}_no_truncate"
    return [
        f'CREATE OR REPLACE FUNCTION "{name}"() RETURNS trigger LANGUAGE plpgsql AS $guard$ BEGIN '
        f"RAISE EXCEPTION '{table} is never emptied' USING ERRCODE = "
        f"'integrity_constraint_violation', CONSTRAINT = '{name}'; END $guard$",
        f'CREATE TRIGGER "{name}" BEFORE TRUNCATE ON "{table}" '
        f'FOR EACH STATEMENT EXECUTE FUNCTION "{name}"()',
    ]


def _drop(connection: BaseDatabaseWrapper, cursor: Any) -> None:
    if connection.vendor == "sqlite":
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'", None)
        for (name,) in cursor.fetchall():
            cursor.execute(f'DROP TRIGGER "{name}"', None)
        return
    cursor.execute(
        "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal AND n.nspname = ANY (current_schemas(false)) "
        "AND p.proname = t.tgname",
        None,
    )
    for name, table in cursor.fetchall():
        cursor.execute(f'DROP TRIGGER "{name}" ON "{table}"', None)
        cursor.execute(f'DROP FUNCTION "{name}"()', None)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


GUARDS = append_only("accounts_auditevent", "the audit log")
