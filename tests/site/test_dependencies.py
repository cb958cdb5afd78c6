"""What the code imports is declared, and what is declared has its reason in ARCHITECTURE.md."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.program import ROOT

pytestmark = pytest.mark.no_database

PROGRAM = ("distressbench_site", "corpus", "annotation", "scoring")
OURS = {*PROGRAM, "tests"}
# The documented home of a class that pydantic itself hands out; both are released together.
PARTS = {"pydantic-core": "pydantic"}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def distributions(requirements: Iterable[str]) -> set[str]:
    """Return the normalised names of what is required."""
    names = [re.match(r"[\w.-]+", requirement) for requirement in requirements]
    return {normalised(name[0]) for name in names if name}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


FOR_THE_PROGRAM = distributions(PYPROJECT["project"]["dependencies"])
FOR_THE_TESTS = FOR_THE_PROGRAM | distributions(PYPROJECT["dependency-groups"]["test"])
FOR_ALL = FOR_THE_TESTS | distributions(PYPROJECT["dependency-groups"]["check"])


def imported_by(file: Path) -> Iterator[str]:
    """Yield the outermost name of each import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def foreign_imports(folders: Iterable[str]) -> dict[str, set[str]]:
    """Return for each distribution that is imported the files that do so."""
    homes = packages_distributions()
    found: dict[str, set[str]] = {}
    for folder in folders:
        for file in (ROOT / folder).rglob("*.py"):
            for name in set(imported_by(file)) - OURS - sys.stdlib_module_names:
                # A name that nothing here provides is reported as it stands.
                for home in homes.get(name, [name]):
                    home = normalised(home)
                    found.setdefault(PARTS.get(home, home), set()).add(str(file))
    return found


def test_what_the_program_imports_is_required_by_name():
    found = foreign_imports(PROGRAM)
    assert {"django", "scipy", "scikit-learn"} <= set(found)

    assert {name: found[name] for name in set(found) - FOR_THE_PROGRAM} == {}


def test_what_the_tests_import_is_required_by_name():
    found = foreign_imports(["tests", "requirements"])

    assert {name: found[name] for name in set(found) - FOR_THE_TESTS} == {}


def test_each_dependency_has_its_reason_in_the_architecture():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("\n## Dependencies\n")[1]
    first_cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    named = {normalised(name.strip()) for cell in first_cells for name in cell.split(",")}

    assert sorted(FOR_ALL - named) == []
