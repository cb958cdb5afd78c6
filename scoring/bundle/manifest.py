"""What a bundle says about itself: its format, and how many rows with which digest."""

from typing import Annotated, Literal

from pydantic import Field

from corpus.schema import canonical_json
from corpus.schema.fields import Digest, Row

MANIFEST = "manifest.json"
FORMAT = "distressbench-bundle"
SCHEMA_VERSION = 1


class TableEntry(Row):
    """How many rows a table has, and the SHA-256 of its file."""

    rows: Annotated[int, Field(ge=0)]
    sha256: Digest


class Manifest(Row):
    """The content of manifest.json."""

    format: Literal["distressbench-bundle"]
    schema_version: Literal[1]
    tables: dict[str, TableEntry]
    notice: Annotated[str, Field(min_length=1)] | None = None


def manifest_line(tables: dict[str, tuple[int, str]], notice: str | None) -> str:
    """Return the text of manifest.json for tables of (rows, sha256)."""
    content = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "tables": {
            name: {"rows": rows, "sha256": sha256} for name, (rows, sha256) in tables.items()
        },
    }
    if notice:
        content["notice"] = notice
    return canonical_json(content) + "\n"
