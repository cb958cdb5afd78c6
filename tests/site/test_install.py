"""Installing says plainly what is missing, and stale locks are noticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import run
from tests.program import ROOT

pytestmark = [
    pytest.mark.no_database,
    pytest.mark.skipif(os.name == "nt", reason="the script is for a POSIX shell"),
]
TOOLS = ("sh", "cmp", "cp", "dirname", "rm")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "requirements", tmp_path / "checkout" / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "checkout")
    return tmp_path / "checkout"


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A PATH with a shell and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def install(checkout: Path, bin_folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(bin_folder / "sh"), "requirements/install.sh", "base"],
        cwd=checkout,
        env={"PATH": str(bin_folder)},
        capture_output=True,
        text=True,
    )


def add_python(bin_folder: Path, refuse: str) -> None:
    python = bin_folder / "python3"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in {refuse}) exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)


def test_a_machine_without_python_is_told_how_to_get_it(checkout: Path, bin_folder: Path) -> None:
    done = install(checkout, bin_folder)

    assert done.returncode == 1
    assert "needs Python 3.11 to 3.14" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr


def test_a_python_that_is_too_old_does_not_count(checkout: Path, bin_folder: Path) -> None:
    add_python(bin_folder, refuse="*version_info*")

    assert "needs Python 3.11 to 3.14" in install(checkout, bin_folder).stderr


def test_a_python_without_venv_is_told_how_to_get_it(checkout: Path, bin_folder: Path) -> None:
    add_python(bin_folder, refuse="*ensurepip*")

    done = install(checkout, bin_folder)

    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_changed_dependency_makes_the_locks_stale(checkout: Path) -> None:
    check = [sys.executable, "requirements/lock.py", "--check"]
    assert subprocess.run(check, cwd=checkout, capture_output=True).returncode == 0

    pyproject = checkout / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8")
    pyproject.write_text(text.replace('"waitress~=3.0"', '"waitress~=3.1"'), encoding="utf-8")

    done = subprocess.run(check, cwd=checkout, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Run `make lock`" in done.stderr


@pytest.mark.parametrize("name", ["base", "test", "check"])
def test_each_lock_pins_with_hashes_and_names_no_index(name: str) -> None:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()

    pins = [line for line in lines if line and not line.startswith(("#", " "))]
    assert len(pins) > 50
    assert all("==" in pin and pin.endswith("\\") for pin in pins)
    assert not [line for line in lines if "://" in line or line.startswith("--")]


@pytest.mark.parametrize(("required", "code"), [(False, 0), (True, 1)])
def test_a_missing_part_of_the_tests_is_named_and_fails_where_all_are_required(
    required: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [run.Part("SQLite", True, "passed, 3 s"), run._optional("PostgreSQL", None, "")]

    assert run._report(parts, required=required) == code

    printed = capsys.readouterr().out
    assert "database tests ran on SQLite only" in printed
    assert "apt install postgresql" in printed


def test_a_failed_part_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [run.Part("SQLite", True, ""), run.Part("PostgreSQL", False, "failed")]

    assert run._report(parts, required=False) == 1
