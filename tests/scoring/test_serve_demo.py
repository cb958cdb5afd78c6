"""The demo walks the whole road by itself, comes back quickly, and deletes nothing but itself."""

import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, free_port

# The demo chooses its own file only where no database is named.
pytestmark = [pytest.mark.sqlite]

STATE = """
import json
from annotation.models import Assignment, LabelEvent, Round, RoundMember, Slot
from distressbench_site.accounts.models import User
from scoring.models import Calibration, CalibrationDecision, Judge, Run, Verdict
free = Slot.objects.exclude(assignments__state__in=["active", "submitted"])
print(json.dumps({
    "people": {
        user.email: sorted(user.groups.values_list("name", flat=True))
        for user in User.objects.all()
    },
    "judges": Judge.objects.count(),
    "runs": list(Run.objects.values_list("status", flat=True)),
    "decisions": list(CalibrationDecision.objects.values_list("decision", flat=True)),
    "verdicts": Verdict.objects.count(),
    "free": free.count(),
    "labellers": list(
        RoundMember.objects.filter(annotator__user__isnull=False)
        .values_list("annotator__user__email", flat=True)
    ),
}))
"""


@pytest.fixture
def program(make_program: Callable[..., Program]) -> Program:
    return make_program(DATABASE_URL="")


@pytest.fixture
def prepared(program: Program) -> Program:
    program.manage("demo", "--no-serve")
    return program


def demo_file(program: Program) -> Path:
    return Path(program.environment["DISTRESSBENCH_DATA"]) / "demo.sqlite3"


def state(program: Program) -> dict:
    program.environment["DATABASE_URL"] = f"sqlite:///{demo_file(program)}"
    out = program.manage("shell", "--no-imports", "--command", STATE).stdout
    program.environment["DATABASE_URL"] = ""
    return json.loads(out.strip().splitlines()[-1])


def test_it_leaves_the_road_done_and_one_reply_for_the_visitor(program: Program) -> None:
    out = program.manage("demo", "--no-serve").stdout
    for wanted in ("Share of the required care", "Calibration 1, approved.", "Ruler "):
        assert wanted in out
    found = state(program)
    assert found["people"] == {
        "clinician@example.org": ["clinician"],
        "senior@example.org": ["clinician", "senior clinician"],
        "researcher@example.org": ["researcher"],
        "admin@example.org": ["admin"],
    }
    assert (found["judges"], found["runs"], found["decisions"]) == (1, ["done"], ["approve"])
    # The sample has 525 criteria, each for a reference and five respondents.
    assert found["verdicts"] == 6 * 525
    assert found["free"] == 1
    assert found["labellers"] == ["clinician@example.org"]
    # The installation's own database was not touched.
    assert not (demo_file(program).parent / "distressbench.sqlite3").exists()


def test_a_second_start_keeps_the_data_and_a_reset_starts_over(prepared: Program) -> None:
    before = state(prepared)
    made = demo_file(prepared).stat().st_ino
    out = prepared.manage("demo", "--no-serve").stdout
    assert "Loading the sample" not in out
    assert (state(prepared), demo_file(prepared).stat().st_ino) == (before, made)
    out = prepared.manage("demo", "--reset", "--no-serve").stdout
    assert "Loading the sample" in out
    assert state(prepared) == before


def test_it_serves_says_how_to_sign_in_and_stops_on_ctrl_c(prepared: Program) -> None:
    port = free_port()
    process = prepared.spawn("demo", "--port", str(port))
    prepared.process = process
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                assert answer.status == 200
                break
        except OSError:
            assert process.poll() is None, prepared.log
            assert time.monotonic() < deadline, prepared.log
            time.sleep(0.1)
    refused = prepared.manage("demo", "--reset", "--no-serve", check=False)
    assert "A demo is running" in refused.stderr
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 0
    prepared.process = None
    for wanted in (f"http://127.0.0.1:{port}/", "only-for-the-demo", "clinician@example.org"):
        assert wanted in prepared.log


def test_a_port_in_use_leads_to_the_next_free_one(prepared: Program) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        prepared.process = prepared.spawn("demo", "--port", str(port))
        deadline = time.monotonic() + 60
        while "Serving at" not in prepared.log:
            assert prepared.process.poll() is None, prepared.log
            assert time.monotonic() < deadline, prepared.log
            time.sleep(0.1)
        assert f"Port {port} is in use; taking" in prepared.log
        assert prepared.stop() == 0


def test_a_database_with_people_is_never_made_a_demo_or_deleted(
    make_program: Callable[..., Program],
) -> None:
    program = make_program()
    program.migrate()
    add = "from distressbench_site.accounts.models import User; User.objects.create_user('a@b.org')"
    program.manage("shell", "--no-imports", "--command", add)
    refused = program.manage("demo", "--no-serve", check=False)
    assert "has people already" in refused.stderr
    refused = program.manage("demo", "--reset", "--no-serve", check=False)
    assert "was not made by the demo" in refused.stderr
    count = "from distressbench_site.accounts.models import User; print(User.objects.count())"
    out = program.manage("shell", "--no-imports", "--command", count).stdout
    assert out.strip().splitlines()[-1] == "1"
