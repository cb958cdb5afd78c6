"""What computes and what reads formats works without Django, and the contract names all of it."""

import json
import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from tests.program import ROOT

pytestmark = pytest.mark.no_database

APPS = ("corpus", "annotation", "scoring")
CONTRACTS: dict[str, Any] = {
    contract["id"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}
# Importing anything of the site imports its Celery app, so that only the linter can look there.
PURE: list[str] = [
    name for name in CONTRACTS["pure"]["source_modules"] if name.partition(".")[0] in APPS
]

# The libraries that the contract forbids are out of reach of this process.
IMPORT_WITHOUT = """
import importlib, json, sys

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ImportError(name)

sys.meta_path.insert(0, Refusal())
works = []
for name in sys.argv[2].split(","):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    works.append(name)
print(json.dumps(works))
"""


def importable_without_django(names: list[str]) -> set[str]:
    forbidden = ",".join(CONTRACTS["pure"]["forbidden_modules"])
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_WITHOUT, forbidden, ",".join(names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def modules_outside_the_layers() -> list[str]:
    """Return the modules of the apps that are no layer of their own, such as views or models."""
    layers = set(re.findall(r"\w+", " ".join(CONTRACTS["inside"]["layers"])))
    return [
        f"{app}.{path.stem}"
        for app in APPS
        for path in sorted((ROOT / app).iterdir())
        if path.suffix == ".py" or (path / "__init__.py").is_file()
        if path.stem not in layers | {"__init__", "apps", "migrations"}
    ]


def test_what_is_named_as_free_of_django_is_imported_without_it():
    parts = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in PURE
        for path in sorted((ROOT / name.replace(".", "/")).glob("*.py"))
        if path.stem != "__init__"
    ]

    assert importable_without_django([*PURE, *parts]) == {*PURE, *parts}


def test_every_module_that_is_free_of_django_is_named_as_such():
    names = modules_outside_the_layers()
    assert "annotation.guidelines" in names

    assert importable_without_django(names) == set(PURE)
