"""Run the tests on all that this machine has, and say plainly what ran and what did not.

python -m tests.run [--long] [arguments for pytest]
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests import healthbench, postgres, redis_server
from tests.program import ROOT, SECRET_KEY, find_chromium

# What a second engine cannot change is not run a second time.
ON_SQLITE = "not postgres"
ON_POSTGRES = "not sqlite and not browser and not no_database"
MISSING = {
    "Chromium": (
        "browser tests were skipped",
        "Debian: apt install chromium; elsewhere Chrome, or DISTRESSBENCH_CHROMIUM=/path",
    ),
    "PostgreSQL": (
        "database tests ran on SQLite only",
        "Debian: apt install postgresql; macOS: brew install postgresql@17; "
        "elsewhere DISTRESSBENCH_POSTGRES_BIN=/folder/of/initdb",
    ),
    "Redis": (
        "tests of the team set-up with a broker were skipped",
        "Debian: apt install redis-server; macOS: brew install redis",
    ),
}

# The data are public and not ours: without them, the same tests run on a file of the same shape.
_REAL_DATA = {
    True: "on the published file, and on one of its shape",
    False: "on a file of its shape only; DISTRESSBENCH_TEST_DATA=/folder/of/the/published/one",
}


@dataclass(frozen=True)
class Part:
    """One part of the run and how it ended; `passed` is None where the part is missing."""

    name: str
    passed: bool | None
    note: str


def main(arguments: list[str]) -> int:
    """Run every part that can run, report, and return the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    long = "--long" in arguments
    arguments = [argument for argument in arguments if argument != "--long"]
    selection = "long" if long else "not long"
    parts: list[Part] = []
    with ExitStack() as stack:
        environment = _environment(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        chromium = find_chromium()
        redis_path = redis_server.find_server()
        if redis_path:
            url = stack.enter_context(redis_server.server(redis_path))
            environment["DISTRESSBENCH_TEST_REDIS"] = url
        chosen = f"({selection}) and {ON_SQLITE}"
        parts.append(_pytest("SQLite", chosen, arguments, environment))
        parts.append(_optional("Chromium", chromium, "browser tests ran in the part on SQLite"))
        parts.append(_optional("Redis", redis_path, "on a private server"))
        real = healthbench.published()
        parts.append(Part("HealthBench", True, _REAL_DATA[real is not None]))
        postgres_bin = postgres.find_bin()
        if postgres_bin is None:
            parts.append(_optional("PostgreSQL", None, ""))
        else:
            environment["DATABASE_URL"] = stack.enter_context(postgres.cluster(postgres_bin))
            chosen = f"({selection}) and {ON_POSTGRES}"
            parts.append(_pytest("PostgreSQL", chosen, arguments, environment))
    return _report(parts, required=_is_set("DISTRESSBENCH_REQUIRE_ALL"))


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a run that neither reads nor touches a real installation."""
    return {
        **os.environ,
        "SECRET_KEY": SECRET_KEY,
        "DISTRESSBENCH_DATA": str(folder),
        "DATABASE_URL": "",
        "CELERY_BROKER_URL": "memory://",
        "DEBUG": "0",
    }


def _pytest(name: str, selection: str, arguments: list[str], environment: dict[str, str]) -> Part:
    print(f"\nTests on {name}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", selection, *_workers(), *arguments]
    began = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    took = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    # Exit code 5 is a selection without a test, which only a narrow selection may be.
    if code == 5 and (arguments or selection.startswith("(long")):
        return Part(name, True, "no test of this selection")
    ended = "passed" if code == 0 else f"failed (pytest exit {code})"
    return Part(name, code == 0, f"{ended}, {took}")


def _workers() -> list[str]:
    """Return the arguments for as many processes as help; one file stays in one process."""
    count = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    return ["-n", str(count), "--dist", "loadfile"] if count > 1 else []


def _optional(name: str, found: object, note: str) -> Part:
    if found:
        return Part(name, True, note)
    consequence, remedy = MISSING[name]
    return Part(name, None, f"not found, {consequence}. {remedy}")


def _report(parts: list[Part], *, required: bool) -> int:
    print("\nWhat ran:")
    words = {True: "yes", False: "FAILED", None: "MISSING" if required else "no"}
    for part in parts:
        print(f"  {part.name:<12} {words[part.passed]:<8} {part.note}")
    failed = any(part.passed is False for part in parts)
    missing = any(part.passed is None for part in parts)
    if missing and required:
        print("DISTRESSBENCH_REQUIRE_ALL is set: a missing part is a failure.")
    sys.stdout.flush()
    return 1 if failed or (missing and required) else 0


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in {"", "0", "false", "no", "off"}


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("Interrupted; the private servers are stopped.")
