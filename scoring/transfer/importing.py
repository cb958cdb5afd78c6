"""Check every row of a source, then write all that is new in one transaction."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db import DataError, IntegrityError, transaction
from pydantic import ValidationError

from corpus.schema.faults import Fault, model_problems, shown
from corpus.transfer.rubrics import RubricTable
from corpus.transfer.table import CHUNK, Changes, Seen, Table
from distressbench_site.accounts.models import User
from distressbench_site.accounts.services import record_audit
from scoring.bundle import BundleChanged, Source
from scoring.transfer.sources import Faults, ImportRefused
from scoring.transfer.tables import TABLES, all_tables

OnStep = Callable[[str, str], None]


@dataclass
class Outcome:
    """What an import did, or would do."""

    changes: dict[str, Changes] = field(default_factory=dict)

    @property
    def anything(self) -> bool:
        """Tell whether a row is new."""
        return any(change.new for change in self.changes.values())


def import_source(
    source: Source,
    *,
    actor: User | None = None,
    dry_run: bool = False,
    on_step: OnStep = lambda _step, _table: None,
) -> Outcome:
    """Write what a source has and the database lacks; raises ImportRefused with all faults.

    A dry run does everything, and takes it back.
    """
    faults = Faults()
    outcome = Outcome()
    source.check(TABLES, faults)
    tables = all_tables(source.fetch, source.notice)
    new: dict[str, set[int]] = {}
    for table in tables:
        on_step("Checking", table.name)
        changes = outcome.changes[table.name] = Changes()
        new[table.name] = _check_table(source, table, changes, faults)
    _finish(source, tables, faults)
    faults.stop_if_any()
    for table in tables:
        if isinstance(table, RubricTable):
            outcome.changes[table.name].drafts = table.drafts
    if not any(new.values()):
        return outcome
    try:
        with transaction.atomic():
            for table in tables:
                if new[table.name]:
                    on_step("Writing", table.name)
                    table.write(_reader(source, table, new[table.name]))
            on_step("Completing", "")
            for table in tables:
                for problem in table.complete():
                    _report(source, table, faults, *problem)
            faults.stop_if_any()
            if outcome.anything:
                record_audit(
                    actor=actor,
                    action="corpus imported",
                    target=source.label,
                    detail={name: one.new for name, one in outcome.changes.items() if one.new},
                )
            transaction.set_rollback(dry_run)
    except (IntegrityError, DataError, LookupError) as error:
        reason = f"the database refused this; was it changed meanwhile? Import it again ({error})"
        raise ImportRefused([Fault(source.label, None, "", "", reason)]) from error
    except BundleChanged as error:
        reason = "the file changed while it was imported; import it again"
        raise ImportRefused([Fault(str(error), None, "", "", reason)]) from error
    return outcome


def _check_table(source: Source, table: Table[Any], changes: Changes, faults: Faults) -> set[int]:
    seen = Seen()
    new: set[int] = set()

    def settle(chunk: list[tuple[int, Any]]) -> None:
        known = table.stored([row for _, row in chunk])
        for line, row in chunk:
            key = table.key_of(row)
            stored = known.get(key)
            if stored is not None and not table.is_new(row, stored):
                problems = [] if table.name in source.defaults else list(table.settle(row, stored))
                changes.unchanged += not problems
            else:
                problems = list(table.problems(row, line))
                if problems:
                    table.mention(row.model_dump(), line)
                else:
                    table.admit(row, line)
                    new.add(line)
            for problem in problems:
                _report(source, table, faults, line, *problem)

    chunk: list[tuple[int, Any]] = []
    for line, raw in source.rows(table.name, faults):
        if raw is None:
            continue
        row, problems = _parse(table, raw)
        if row is None:
            for problem in problems:
                _report(source, table, faults, line, *problem)
            # References to a refused row are not refused for that; its key may be broken too.
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                table.mention(raw, line)
            continue
        earlier = seen.first(table.key_of(row), line)
        if earlier is not None:
            reason = f"line {earlier} has this key already: {_key_text(table, row)}"
            _report(source, table, faults, line, "", "", reason)
            continue
        chunk.append((line, row))
        if len(chunk) == CHUNK:
            settle(chunk)
            chunk = []
    if chunk:
        settle(chunk)
    changes.new = 0 if table.name == "scores" else len(new)
    return new


def _parse(table: Table[Any], raw: dict[str, Any]) -> tuple[Any, list[tuple[str, object, str]]]:
    try:
        return table.row.model_validate(raw), []
    except ValidationError as error:
        return None, list(model_problems(error))


def _key_text(table: Table[Any], row: Any) -> str:
    return ", ".join(f"{part} {getattr(row, part)}" for part in table.key)


def _reader(source: Source, table: Table[Any], new: set[int]) -> Callable[[], Iterator[list[Any]]]:
    def rows() -> Iterator[list[Any]]:
        chunk: list[Any] = []
        for line, raw in source.rows(table.name, _never):
            if line in new:
                chunk.append(table.row.model_validate(raw))
                if len(chunk) == CHUNK:
                    yield chunk
                    chunk = []
        if chunk:
            yield chunk

    return rows


def _finish(source: Source, tables: list[Table[Any]], faults: Faults) -> None:
    for table in tables:
        for problem in table.finish():
            _report(source, table, faults, *problem)


def _report(
    source: Source,
    table: Table[Any],
    faults: Faults,
    line: int | None,
    name: str,
    value: object,
    reason: str,
) -> None:
    file, place, path = source.place(table.name, line, name)
    faults(Fault(file, place, path, shown(value), reason))


def _never(fault: Fault) -> None:
    raise BundleChanged(fault.file)
