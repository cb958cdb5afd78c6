"""`serve` as a real process: it starts, judges, stops cleanly, and loses nothing to kill -9."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.program import ROOT, Program, free_port

WAIT_SECONDS = 120

# Makes a labelled collection in the program's own database, trains, and starts a run.
PREPARE = """
from tests.scoring.preparing import prepare
print(prepare(conversations={conversations}))
"""
COUNT = """
import json
from django.db.models import Count
from scoring.models import Call, Run, Verdict
keys = Verdict.objects.values("judge", "reply", "criterion", "draw").annotate(n=Count("id"))
print(json.dumps({
    "status": list(Run.objects.values_list("status", flat=True)),
    "verdicts": Verdict.objects.count(),
    "doubled": keys.filter(n__gt=1).count(),
    "unsettled": Call.objects.filter(outcome__isnull=True).count(),
}))
"""


def in_shell(program: Program, code: str) -> str:
    return program.manage("shell", "--no-imports", "--command", code).stdout.strip()


def counts(program: Program) -> dict:
    return json.loads(in_shell(program, COUNT).splitlines()[-1])


def verdicts_now(program: Program) -> int:
    """Count without a new process, which would be slower than the run."""
    url, query = program.environment["DATABASE_URL"], "SELECT count(*) FROM scoring_verdict"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(query).fetchone()[0]
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]


def wait_until_done(program: Program) -> dict:
    deadline = time.monotonic() + WAIT_SECONDS
    while set((found := counts(program)).pop("status")) != {"done"}:
        assert time.monotonic() < deadline, f"{found}\n{program.log}"
        time.sleep(0.5)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_healthy_and_stops_cleanly_on_a_signal(
    live_program: Program, number: signal.Signals
) -> None:
    assert live_program.is_healthy()
    assert live_program.process
    live_program.process.send_signal(number)
    assert live_program.process.wait(30) == 0
    live_program.process = None
    assert f"Serving at {live_program.url}/" in live_program.log
    assert live_program.log.rstrip().endswith("Stopped.")


def test_an_unprepared_database_is_said_in_one_line(make_program: Callable[..., Program]) -> None:
    done = make_program().manage("serve", "--port", str(free_port()), check=False)
    assert done.returncode == 1
    assert "migrations. Run: manage.py migrate" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_guards_are_said(make_program: Callable[..., Program]) -> None:
    program = make_program()
    program.migrate()
    in_shell(program, "from distressbench_site.accounts import guards; guards.drop()")
    done = program.manage("serve", "--port", str(free_port()), check=False)
    assert done.returncode == 1
    assert "The database lacks guards" in done.stderr


def test_a_port_in_use_is_said(live_program: Program) -> None:
    done = live_program.manage("serve", "--port", str(live_program.port), check=False)
    assert done.returncode == 1
    assert f"Port {live_program.port} is in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_static_files_are_collected_once_and_again_after_a_change(live_program: Program) -> None:
    marker = Path(live_program.environment["DISTRESSBENCH_DATA"]) / "static" / ".fingerprint"
    collected = marker.stat().st_mtime_ns
    live_program.restart()
    assert marker.stat().st_mtime_ns == collected
    marker.write_text("of other files", encoding="ascii")
    live_program.restart()
    assert marker.read_text(encoding="ascii") != "of other files"


def test_the_worker_inside_judges_a_run_that_it_finds_in_the_tables(
    make_program: Callable[..., Program],
) -> None:
    program = make_program()
    program.migrate()
    units = int(in_shell(program, PREPARE.format(conversations=6)).splitlines()[-1])
    program.start()
    found = wait_until_done(program)
    assert found == {"verdicts": units, "doubled": 0, "unsettled": 0}
    assert program.stop() == 0


@pytest.mark.long
def test_kill_9_in_the_middle_of_a_run_loses_and_doubles_nothing(
    make_program: Callable[..., Program],
) -> None:
    program = make_program()
    program.migrate()
    units = int(in_shell(program, PREPARE.format(conversations=500)).splitlines()[-1])
    middles = 0
    for _ in range(3):
        before = verdicts_now(program)
        program.start()
        deadline = time.monotonic() + WAIT_SECONDS
        # A killed worker's lease has to lapse first.
        while verdicts_now(program) == before < units:
            assert time.monotonic() < deadline, program.log
            time.sleep(0.01)
        program.kill()
        middles += verdicts_now(program) < units
    assert middles, "no kill came in the middle of the run"
    program.start()
    found = wait_until_done(program)
    assert found == {"verdicts": units, "doubled": 0, "unsettled": 0}


def test_a_command_and_the_serving_process_share_a_run(
    make_program: Callable[..., Program],
) -> None:
    program = make_program()
    program.migrate()
    units = int(in_shell(program, PREPARE.format(conversations=30)).splitlines()[-1])
    program.start()
    done = program.manage("judge", "--judge", "baseline", "--collection", "prepared")
    assert "0 failed" in done.stdout
    found = wait_until_done(program)
    assert (found["verdicts"], found["doubled"]) == (units, 0)
    boards = json.loads(program.manage("leaderboard", "--json").stdout)
    assert [board["collection"] for board in boards] == ["prepared"]


@pytest.mark.redis
def test_a_worker_of_its_own_process_consumes_from_redis(
    make_program: Callable[..., Program], redis_url: str
) -> None:
    program = make_program(CELERY_BROKER_URL=redis_url)
    program.migrate()
    units = int(in_shell(program, PREPARE.format(conversations=6)).splitlines()[-1])
    program.start()
    with (program.folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "distressbench_site", "worker", "--pool=solo"],
            cwd=ROOT,
            env=program.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        found = wait_until_done(program)
    finally:
        worker.terminate()
        worker.wait(30)
    assert (found["verdicts"], found["doubled"]) == (units, 0)
