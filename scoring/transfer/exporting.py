"""Read the database out, in one snapshot: the same state gives the same bytes."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from django.core.exceptions import ValidationError
from django.db import connection, transaction

from corpus import healthbench
from corpus.models import Collection, Respondent
from corpus.schema import canonical_json
from corpus.transfer.collections import notices
from corpus.transfer.conversations import ConversationTable, CriterionTable
from corpus.transfer.index import CorpusIndex
from corpus.transfer.replies import ReplyTable
from corpus.transfer.rubrics import RubricTable
from corpus.transfer.table import Scope, Table
from scoring.bundle import MANIFEST, manifest_line, pack
from scoring.transfer.tables import all_tables

OnTable = Callable[[str], None]


def export_bundle(
    path: Path, *, collections: tuple[str, ...] = (), on_table: OnTable = lambda _table: None
) -> dict[str, int]:
    """Write a bundle of the named collections, or of everything; returns rows by table.

    A path that ends in .zip becomes a zip, every other one a folder. Raises ValidationError
    where a collection is unknown or the path is taken; then nothing is written.
    """
    scope = _scope(collections)
    with _new_path(path) as scratch:
        folder = scratch / "bundle"
        folder.mkdir()
        written: dict[str, tuple[int, str]] = {}
        with snapshot():
            for table in all_tables(_no_file):
                on_table(table.name)
                written[table.name] = _write_table(folder, table, scope)
            notice = notices(scope)
        text = manifest_line({name: one for name, one in written.items() if one[0]}, notice)
        (folder / MANIFEST).write_bytes(text.encode())
        if path.suffix.lower() == ".zip":
            with (scratch / path.name).open("xb") as archive:
                pack(folder, archive)
            os.replace(scratch / path.name, path)
        else:
            if path.is_dir():
                path.rmdir()
            os.replace(folder, path)
    return {name: rows for name, (rows, _) in written.items()}


def export_healthbench(
    path: Path, *, collection: str, on_table: OnTable = lambda _table: None
) -> int:
    """Write a collection as HealthBench JSONL, sorted by prompt_id; returns how many examples.

    Conversations without a published rubric have no form there and are left out.
    """
    scope = _scope((collection,))
    count = 0
    with _new_path(path) as scratch:
        whole = scratch / path.name
        with snapshot(), whole.open("xb") as out:
            on_table("conversations")
            for line in _examples(scope):
                out.write(f"{canonical_json(line)}\n".encode())
                count += 1
        os.replace(whole, path)
    return count


def _examples(scope: Scope) -> Iterator[dict[str, Any]]:
    index = CorpusIndex(_no_file)
    rubrics = _by_conversation(
        row for row in RubricTable(index).read(scope) if row["status"] == "published"
    )
    criteria = _by_conversation(CriterionTable(index).read(scope))
    replies = _by_conversation(_references(index, scope))
    for conversation in ConversationTable(index).read(scope):
        key = conversation["key"]
        if key in rubrics:
            yield healthbench.example(
                conversation,
                {row["key"]: row for row in criteria.get(key, [])},
                rubrics[key][0]["items"],
                replies[key][0] if key in replies else None,
            )


def _references(index: CorpusIndex, scope: Scope) -> list[dict[str, Any]]:
    slugs = set(
        Respondent.objects.filter(kind=Respondent.Kind.REFERENCE).values_list("slug", flat=True)
    )
    found = (
        row
        for row in ReplyTable(index).read(scope)
        if row["respondent"] in slugs and row["sample"] == 0
    )
    return sorted(
        found, key=lambda row: (row["respondent"] != healthbench.REFERENCE, row["respondent"])
    )


def _by_conversation(rows: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["conversation"], []).append(row)
    return found


def _scope(collections: tuple[str, ...]) -> Scope:
    known = set(Collection.objects.order_by().values_list("slug", flat=True))
    unknown = sorted(set(collections) - known)
    if unknown:
        raise ValidationError(
            f"There is no collection {', '.join(unknown)}; there are {', '.join(sorted(known))}."
        )
    return Scope(collections or None)


def _write_table(folder: Path, table: Table[Any], scope: Scope) -> tuple[int, str]:
    path = folder / f"{table.name}.jsonl"
    digest = hashlib.sha256()
    rows = 0
    with path.open("xb") as out:
        for row in table.read(scope):
            line = f"{canonical_json(row)}\n".encode()
            digest.update(line)
            out.write(line)
            rows += 1
    if not rows:
        path.unlink()
    return rows, digest.hexdigest()


@contextmanager
def _new_path(path: Path) -> Iterator[Path]:
    """Give a scratch folder beside a path that nothing is at, and take the rest away."""
    if path.is_dir() and path.suffix.lower() != ".zip":
        if any(path.iterdir()):
            raise ValidationError(f"{path} is there already and not empty; name a new place.")
    elif path.exists() or path.is_symlink():
        raise ValidationError(f"{path} is there already; name a new place.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=path.parent))
    except OSError as error:
        raise ValidationError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        yield scratch
    except OSError as error:
        raise ValidationError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def snapshot() -> Iterator[None]:
    """Let all reads see one state of the data, without keeping writers out."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            # atomic() begins with a lock for writing; a deferred transaction only reads.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
    else:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield


def _no_file(table: str, line: int) -> NoReturn:
    raise LookupError(f"{table} {line}: nothing is being imported")
