"""Folders and zips of tables: read strictly and in a stream, written to the same bytes."""

import hashlib
import shutil
import zipfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from pydantic import ValidationError

from corpus.schema.faults import Fault, Report, model_problems, shown
from corpus.schema.lines import read_lines
from scoring.bundle.manifest import MANIFEST, Manifest

MAX_MEMBER = 8 * 1024**3
MAX_TOTAL = 16 * 1024**3
# A member that unpacks to many times its size is a bomb, unless it is small anyway.
MAX_RATIO = 200
SMALL = 32 * 1024**2
_PIECE = 1024 * 1024
_ENCRYPTED = 0x1

# Bytes read so far, for a progress bar.
OnBytes = Callable[[int], None]


class BundleChanged(Exception):
    """A file is no longer what it was when it was checked."""


class Source(Protocol):
    """Where the rows of an import come from."""

    label: str
    notice: str | None
    defaults: frozenset[str]

    def check(self, tables: Sequence[str], report: Report) -> None:
        """Report what is wrong with the whole, before its rows are read."""

    def rows(self, table: str, report: Report) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """Yield line and object of every row of a table; None where it was refused."""

    def place(self, table: str, line: int | None, field: str) -> tuple[str, int | None, str]:
        """Return file, line and field as the person who made the file knows them."""

    def fetch(self, table: str, line: int) -> dict[str, Any]:
        """Return one row again."""

    def size(self) -> int:
        """Return how many bytes all tables have."""


class _Watched:
    """A stream of lines that knows its digest and where each line starts."""

    def __init__(self, stream: BinaryIO, on_bytes: OnBytes, starts: "array[int] | None") -> None:
        self._stream, self._on_bytes, self._starts = stream, on_bytes, starts
        self._hash = hashlib.sha256()
        self._at, self._new_line = 0, True

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line, or its first bytes."""
        raw = self._stream.readline(limit)
        if raw:
            if self._new_line and self._starts is not None:
                self._starts.append(self._at)
            self._new_line = raw.endswith(b"\n")
            self._hash.update(raw)
            self._at += len(raw)
            self._on_bytes(len(raw))
        return raw

    @property
    def sha256(self) -> str:
        """Return the digest of what was read."""
        return self._hash.hexdigest()


class FolderSource:
    """A bundle in a folder."""

    notice: str | None = None
    defaults: frozenset[str] = frozenset()

    def __init__(self, folder: Path, label: str, on_bytes: OnBytes = lambda _: None) -> None:
        self._folder = folder
        self.label = label
        self._on_bytes = on_bytes
        self._entries: dict[str, tuple[int, str]] | None = None
        self._digests: dict[str, str] = {}
        self._starts: dict[str, array[int]] = {}

    def size(self) -> int:
        """Return how many bytes all tables have."""
        return sum(path.stat().st_size for path in self._folder.glob("*.jsonl"))

    def check(self, tables: Sequence[str], report: Report) -> None:
        """Report a missing or wrong manifest, and files that no table is."""
        if not (self._folder / MANIFEST).is_file():
            report(Fault(MANIFEST, None, "", "", "the manifest is missing; this is no bundle"))
            return
        known = {f"{table}.jsonl" for table in tables}
        for path in sorted(self._folder.iterdir()):
            if path.name not in known | {MANIFEST}:
                report(Fault(path.name, None, "", "", "a bundle has no such file"))
        manifest = self._read_manifest(report)
        if manifest is None:
            return
        self.notice = manifest.notice
        self._entries = {
            name: (entry.rows, entry.sha256) for name, entry in manifest.tables.items()
        }
        for name in sorted(set(self._entries) - set(tables)):
            report(Fault(MANIFEST, 1, f"tables.{name}", "", "there is no such table"))
        for table in tables:
            there = self._path(table).is_file()
            if there and table not in self._entries:
                report(
                    Fault(f"{table}.jsonl", None, "", "", "the manifest does not list this file")
                )
            elif not there and self._entries.get(table, (0, ""))[0]:
                reason = "the manifest lists this table, and its file is missing"
                report(Fault(f"{table}.jsonl", None, "", "", reason))

    def _read_manifest(self, report: Report) -> Manifest | None:
        path = self._folder / MANIFEST
        with path.open("rb") as stream:
            lines = [(line, raw) for line, raw in read_lines(stream, MANIFEST, report)]
        if len(lines) != 1:
            report(Fault(MANIFEST, None, "", "", "the manifest must be one line of JSON"))
            return None
        raw = lines[0][1]
        if raw is None:
            return None
        try:
            return Manifest.model_validate(raw)
        except ValidationError as error:
            for field, value, reason in model_problems(error):
                report(Fault(MANIFEST, 1, field, shown(value), reason))
            return None

    def _path(self, table: str) -> Path:
        return self._folder / f"{table}.jsonl"

    def rows(self, table: str, report: Report) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """Yield the rows of a table; a second reading must find the same bytes."""
        path = self._path(table)
        if not path.is_file():
            return
        again = table in self._digests
        starts = array("Q") if not again else None
        if starts is not None:
            self._starts[table] = starts
        count = 0
        with path.open("rb") as stream:
            watched = _Watched(stream, self._on_bytes, starts)
            for line, raw in read_lines(cast(BinaryIO, watched), path.name, report):
                count = line
                yield line, raw
        if again:
            if watched.sha256 != self._digests[table]:
                raise BundleChanged(path.name)
            return
        self._digests[table] = watched.sha256
        entry = (self._entries or {}).get(table)
        if entry is not None:
            if entry[0] != count:
                reason = f"the manifest says {entry[0]} rows, and there are {count}"
                report(Fault(path.name, None, "", str(count), reason))
            if entry[1] != watched.sha256:
                reason = "the manifest says another SHA-256: the file was changed or cut"
                report(Fault(path.name, None, "", watched.sha256, reason))

    def place(self, table: str, line: int | None, field: str) -> tuple[str, int | None, str]:
        """Return file, line and field."""
        return f"{table}.jsonl", line, field

    def fetch(self, table: str, line: int) -> dict[str, Any]:
        """Return one row again."""
        with self._path(table).open("rb") as stream:
            stream.seek(self._starts[table][line - 1])
            _, raw = next(read_lines(stream, table, _ignore))
        if raw is None:
            raise BundleChanged(table)
        return raw


def unpack(archive: Path, folder: Path, report: Report) -> bool:
    """Unpack a zip of plain files into a folder; False where any member was refused."""
    fine = True

    def refuse(name: str, reason: str) -> None:
        nonlocal fine
        fine = False
        report(Fault(shown(name), None, "", "", reason))

    try:
        with zipfile.ZipFile(archive) as opened:
            seen: set[str] = set()
            total = 0
            for info in opened.infolist():
                total += info.file_size
                if reason := _refused(info, seen, total):
                    refuse(info.filename, reason)
                seen.add(info.filename)
            if not fine:
                return False
            for info in opened.infolist():
                with opened.open(info) as packed, (folder / info.filename).open("xb") as out:
                    if not _copy(packed, out, info.file_size):
                        refuse(info.filename, "the member is larger than it says")
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError) as error:
        refuse(archive.name, f"the zip cannot be read: {error}")
    return fine


def _refused(info: zipfile.ZipInfo, seen: set[str], total: int) -> str:
    name = info.filename
    if "/" in name or "\\" in name or ":" in name or name in {"", ".", ".."} or "\0" in name:
        return "a zip has plain files at its top, no folders and no other places"
    if name in seen:
        return "the name stands twice in the zip"
    if info.flag_bits & _ENCRYPTED:
        return "the member is encrypted"
    if info.external_attr >> 28 not in {0, 0o10}:
        return "the member is no plain file"
    if info.file_size > MAX_MEMBER or total > MAX_TOTAL:
        return "the member is too large"
    if info.file_size > SMALL and info.file_size > MAX_RATIO * max(1, info.compress_size):
        return "the member unpacks to far more than its size"
    return ""


def _copy(packed: Any, out: BinaryIO, limit: int) -> bool:
    copied = 0
    while piece := packed.read(_PIECE):
        copied += len(piece)
        if copied > limit:
            return False
        out.write(piece)
    return True


def pack(folder: Path, archive: BinaryIO) -> None:
    """Write the files of a folder as a zip: the same files give the same bytes."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in sorted(folder.iterdir()):
            info = zipfile.ZipInfo(path.name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            info.file_size = path.stat().st_size
            with path.open("rb") as plain, zipped.open(info, "w") as packed:
                shutil.copyfileobj(plain, packed, _PIECE)


def _ignore(fault: Fault) -> None:
    """Say nothing: the fault was reported when the row was read first."""
