"""What computes needs no Django, what starts needs no heavy numerics, and contracts name it all."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.program import ROOT, SECRET_KEY

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


# All that a serving process has loaded before it answers: apps, tasks, every page.
START = """
import sys
from django.core.management import call_command
from distressbench_site.wsgi import application
from distressbench_site.celery import app
app.loader.import_default_modules()
call_command("check", verbosity=0)
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_starting_waits_for_no_library_that_only_a_computation_needs(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", START],
        cwd=ROOT,
        env={**os.environ, "DISTRESSBENCH_DATA": str(tmp_path), "SECRET_KEY": SECRET_KEY},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())

    assert {"scoring", "annotation", "numpy", "celery"} <= loaded
    assert loaded & {"scipy", "sklearn", "pandas", "joblib", "aiohttp", "rich"} == set()
