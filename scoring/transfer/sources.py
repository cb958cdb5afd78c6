"""Where rows come from: a folder, a zip, or a HealthBench file turned into tables."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from corpus import healthbench
from corpus.schema import canonical_json
from corpus.schema.faults import Fault, Report, shown
from corpus.schema.fields import SLUG
from corpus.schema.lines import read_lines
from scoring.bundle import FolderSource, Source, unpack
from scoring.bundle.container import OnBytes

# More than anybody reads; the rest is counted.
MAX_FAULTS = 1000
_ZIP = b"PK"


class UnreadableError(Exception):
    """The path holds nothing that can be imported."""


class ImportRefused(Exception):
    """The source has faults; nothing was written."""

    def __init__(self, faults: list[Fault], more: int = 0) -> None:
        super().__init__(f"{len(faults) + more} faults")
        self.faults, self.more = faults, more


class Faults:
    """The faults found so far: the first are kept, the rest is counted."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self.more = 0

    def __call__(self, fault: Fault) -> None:
        """Take one fault."""
        if len(self.kept) < MAX_FAULTS:
            self.kept.append(fault)
        else:
            self.more += 1

    def stop_if_any(self) -> None:
        """Raise ImportRefused with the faults, where there are any."""
        if self.kept:
            raise ImportRefused(self.kept, self.more)


@contextmanager
def open_source(
    path: Path, *, collection: str = "", on_bytes: OnBytes = lambda _: None
) -> Iterator[Source]:
    """Open a bundle (folder or zip) or a HealthBench file; raises with what is wrong with it."""
    if path.is_dir():
        _refuse_collection(collection)
        yield FolderSource(path, path.name, on_bytes)
        return
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_ZIP))
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}.") from error
    faults = Faults()
    with tempfile.TemporaryDirectory(prefix="distressbench-") as scratch:
        folder = Path(scratch)
        if start == _ZIP:
            _refuse_collection(collection)
            if not unpack(path, folder, faults):
                faults.stop_if_any()
            yield FolderSource(folder, path.name, on_bytes)
        else:
            slug = collection or healthbench.collection_slug(path.name)
            if not SLUG.fullmatch(slug) or len(slug) > 64:
                raise UnreadableError(
                    f"“{slug}” is no name for a collection: take letters, digits, hyphens and"
                    " underscores, at most 64."
                )
            yield HealthBenchSource(path, folder, slug, on_bytes)


def _refuse_collection(collection: str) -> None:
    if collection:
        raise UnreadableError("A bundle names its own collections; leave --collection out.")


class HealthBenchSource(FolderSource):
    """A HealthBench file, as the tables that its examples become."""

    # What people may have renamed or described since; an import never takes that back.
    defaults = frozenset({"collections", "dimensions", "respondents"})
    _FIELDS = {
        "conversations": {"key": "prompt_id", "turns": "prompt", "source": ""},
        "criteria": {"key": "", "text": "criterion", "source": ""},
        "rubrics": {"items": "rubrics"},
        "replies": {"turns": "ideal_completions_data.ideal_completion"},
    }

    def __init__(self, file: Path, folder: Path, collection: str, on_bytes: OnBytes) -> None:
        super().__init__(folder, file.name, on_bytes)
        self._file = file
        self._collection = collection
        # By table: for every row, the line of its example and its place among its rows.
        self._origins: dict[str, list[tuple[int, int]]] = {}
        self._faults: list[Fault] = []
        self._convert(self._faults.append)

    def check(self, tables: Sequence[str], report: Report) -> None:
        """Report what was wrong with the examples when they were turned into tables."""
        for fault in self._faults:
            report(fault)

    def _convert(self, report: Report) -> None:
        dimensions: set[str] = set()
        lines: dict[str, int] = {}
        streams: dict[str, BinaryIO] = {}
        objects = 0
        try:
            with self._file.open("rb") as stream:
                for line, raw in read_lines(stream, self.label, report):
                    if raw is None:
                        continue
                    objects += 1
                    found = list(healthbench.problems(raw))
                    for name, value, reason in found:
                        report(Fault(self.label, line, name, shown(value), reason))
                    if found:
                        continue
                    earlier = lines.setdefault(raw["prompt_id"], line)
                    if earlier != line:
                        reason = f"line {earlier} has this prompt_id already"
                        report(
                            Fault(self.label, line, "prompt_id", shown(raw["prompt_id"]), reason)
                        )
                        continue
                    rows = healthbench.example_rows(raw, self._collection)
                    dimensions.update(item["dimension"] for item in rows["rubrics"][0]["items"])
                    self._add(streams, rows, line)
            shared = healthbench.shared_rows(self._collection, dimensions)
            self._add(streams, shared, None)
        finally:
            for opened in streams.values():
                opened.close()
        if not objects:
            first = self._faults[0] if self._faults else None
            what = f"line {first.line}: {first.reason}" if first else "it is empty"
            raise UnreadableError(
                f"{self.label} is neither a bundle nor HealthBench JSONL ({what})."
            )

    def _add(
        self, streams: dict[str, BinaryIO], rows: dict[str, list[dict[str, Any]]], line: int | None
    ) -> None:
        for table, found in rows.items():
            if table not in streams:
                streams[table] = self._path(table).open("wb")
            origins = self._origins.setdefault(table, [])
            for number, row in enumerate(found):
                streams[table].write(f"{canonical_json(row)}\n".encode())
                origins.append((line or 0, number))

    def place(self, table: str, line: int | None, field: str) -> tuple[str, int | None, str]:
        """Return the line and the field of the example that a row was made of."""
        origins = self._origins.get(table, [])
        if line is None or not 0 < line <= len(origins):
            return self.label, None, field
        origin, number = origins[line - 1]
        first = re.match(r"[a-z_]*", field)
        head = first.group() if first else ""
        named = self._FIELDS.get(table, {}).get(head, head) + field[len(head) :]
        if table == "criteria":
            named = f"rubrics[{number}].{named}".rstrip(".")
        return self.label, origin or None, named
