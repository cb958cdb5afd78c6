"""Write the locks of this folder from pyproject.toml; with --check, tell whether they are stale."""

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PYPROJECT = FOLDER.parent / "pyproject.toml"
# Each lock holds all of the one before it, so that one environment serves them all.
LOCKS: dict[str, tuple[str, ...]] = {"base": (), "test": ("test",), "check": ("test", "check")}


def digest_of_inputs(groups: tuple[str, ...]) -> str:
    """Return the digest of everything in pyproject.toml that decides one lock."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    inputs = {
        "requires-python": project["project"]["requires-python"],
        "dependencies": project["project"]["dependencies"],
        "groups": {group: project["dependency-groups"][group] for group in groups},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def header_of(name: str) -> str:
    """Return the first lines of a lock: how it is made, and from what."""
    return (
        "# Made by `make lock` from pyproject.toml; every platform, Python 3.11 to 3.14.\n"
        f"# inputs sha256:{digest_of_inputs(LOCKS[name])}\n"
    )


def write_locks(extra: list[str]) -> None:
    """Resolve every lock anew; pins that still fit are kept unless --upgrade is among `extra`."""
    uv = shutil.which("uv")
    if uv is None:
        raise SystemExit("make lock needs uv on the PATH (see CONTRIBUTING.md).")
    previous: Path | None = None
    for name, groups in LOCKS.items():
        lock = FOLDER / f"{name}.txt"
        command = [uv, "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--fork-strategy", "fewest", "--python-version", "3.11"]
        command += ["--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate"]
        command += ["--output-file", str(lock), *extra, str(PYPROJECT)]
        for group in groups:
            command += ["--group", f"{PYPROJECT}:{group}"]
        if previous is not None:
            command += ["--constraint", str(previous)]
        subprocess.run(command, check=True)
        lock.write_text(header_of(name) + lock.read_text(encoding="utf-8"), encoding="utf-8")
        previous = lock


def check_locks() -> None:
    """Fail when a lock was made from other inputs; needs no network."""
    stale = [
        name
        for name in LOCKS
        if not (FOLDER / f"{name}.txt").is_file()
        or not (FOLDER / f"{name}.txt").read_text(encoding="utf-8").startswith(header_of(name))
    ]
    if stale:
        files = ", ".join(f"requirements/{name}.txt" for name in stale)
        raise SystemExit(f"Stale: {files}. Run `make lock` and commit the result.")
    print("The locks match pyproject.toml.")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments == ["--check"]:
        check_locks()
    else:
        write_locks(arguments)
