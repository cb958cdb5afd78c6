"""manage.py demo: the whole road on the sample corpus, then serve it on this machine."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, connections

from distressbench_site.accounts.models import AuditEvent, User
from distressbench_site.accounts.roles import ADMIN, CLINICIAN, RESEARCHER, SENIOR_CLINICIAN
from distressbench_site.accounts.services import record_audit, set_roles
from distressbench_site.management import serving

HOST = "127.0.0.1"
PORT = 8000
PORTS_TRIED = 20
FILE = "demo.sqlite3"
SAMPLE = "distressbench-sample"
BEGUN, PREPARED = "demo begun", "demo prepared"
# Known to everybody who reads this, and so never served beyond loopback.
PASSWORD = "only-for-the-demo"
PEOPLE = (
    ("clinician@example.org", "Demo clinician", (CLINICIAN,)),
    ("senior@example.org", "Demo senior clinician", (CLINICIAN, SENIOR_CLINICIAN)),
    ("researcher@example.org", "Demo researcher", (RESEARCHER,)),
    ("admin@example.org", "Demo admin", (ADMIN,)),
)
APPROVAL = (
    "Demonstration on synthetic labels: it shows the way, and says nothing about a real judge."
)


class Command(BaseCommand):
    """Prepare the demo where it is not there yet, print its leaderboard, and serve it."""

    help = "Load the sample corpus and people, walk the road once, serve on loopback."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--reset", action="store_true", help="start over; what was labelled in it is lost"
        )
        parser.add_argument("--no-serve", action="store_true", help="prepare and print only")
        parser.add_argument("--port", type=int, default=PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, print, serve."""
        own_file = use_own_file()
        with demo_lock(exclusive=options["reset"]):
            if options["reset"]:
                self._reset(own_file)
        with demo_lock(exclusive=False):
            try:
                self._prepare()
            except ValidationError as error:
                raise CommandError(" ".join(error.messages)) from error
            except KeyboardInterrupt:
                raise CommandError("Stopped; `make demo` goes on from here.") from None
            call_command("leaderboard", collection=SAMPLE, stdout=self.stdout._out)
            if options["no_serve"]:
                return
            port = free_port(options["port"])
            if port != options["port"]:
                self.stdout.write(f"\nPort {options['port']} is in use; taking {port}.")
            self._say_what_to_try(port)
            call_command("serve", host=HOST, port=port, stdout=self.stdout._out)

    def _reset(self, own_file: bool) -> None:
        if connection.vendor != "sqlite":
            raise CommandError(
                "--reset deletes a database file and this demo is on PostgreSQL: drop that"
                " database yourself."
            )
        path = Path(connection.settings_dict["NAME"])
        if not path.exists():
            return
        if not own_file and not was(BEGUN):
            raise CommandError(f"{path} was not made by the demo; it is left as it is.")
        connections.close_all()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)

    def _prepare(self) -> None:
        if serving.open_migrations():
            self._step("Preparing the database", lambda: call_command("migrate", verbosity=0))
        if was(PREPARED):
            return
        if not was(BEGUN):
            if User.objects.exists():
                raise CommandError(
                    "This database has people already. The demo signs in with a password that"
                    " everybody knows; give it a database of its own."
                )
            record_audit(actor=None, action=BEGUN)
        sample = settings.BASE_DIR / "fixtures" / "sample"
        self._step(
            "Loading the sample corpus (fictional, not written by clinicians)",
            lambda: call_command("import_corpus", str(sample), stdout=open_nowhere()),
        )
        self._step("Making four people", make_people)
        self._step("Training the baseline, judging, calibrating", walk_the_road)
        record_audit(actor=None, action=PREPARED)

    def _step(self, what: str, act: Callable[[], Any]) -> None:
        self.stdout.write(f"{what} … ", ending="")
        self.stdout.flush()
        act()
        self.stdout.write("done")

    def _say_what_to_try(self, port: int) -> None:
        say = self.stdout.write
        say(f"\nDistressBench demo: http://{HOST}:{port}/")
        say(f"\nSign in with the password {PASSWORD} as")
        for address, _, roles in PEOPLE:
            say(f"  {address:<24} {', '.join(roles)}")
        say(
            "\nWhat to try\n"
            "  1. As the clinician, label the one reply that still waits, and submit it.\n"
            "  2. As the researcher, read the round's agreement and the judge's calibration.\n"
            "  3. Then see the calibration turn stale; calibrate again, approve with a reason.\n"
            "  4. Read the leaderboard, with the ruler beside every score.\n"
            "  5. Ctrl-C stops; `make demo` comes back to the same data, `make demo-reset` starts"
            " over.\n"
        )


def use_own_file() -> bool:
    """Keep the demo apart from an installation's own data, unless a database was named."""
    if os.environ.get("DATABASE_URL", "").strip():
        return False
    connections.close_all()
    # Every thread's connection is made from these settings.
    connections.settings["default"]["NAME"] = settings.DATA_DIR / FILE
    return True


def was(action: str) -> bool:
    """Tell whether the demo left this mark in the audit log."""
    if AuditEvent._meta.db_table not in connection.introspection.table_names():
        return False
    return AuditEvent.objects.filter(action=action).exists()


def make_people() -> None:
    """Make the four people, and let the clinician take the reply that is left."""
    from annotation.models import Round
    from annotation.services import add_member, annotator_for

    for address, name, roles in PEOPLE:
        user = User.objects.filter(email=address).first()
        if user is None:
            user = User.objects.create_user(address, PASSWORD, name=name)
        set_roles(user=user, roles=roles, actor=None)
    annotator = annotator_for(user=User.objects.get(email=PEOPLE[0][0]))
    for item in Round.objects.filter(collection__slug=SAMPLE, status=Round.Status.OPEN):
        add_member(round_id=item.pk, annotator=annotator, actor=None)


def walk_the_road() -> None:
    """Train, judge, calibrate and approve, as the demo's researcher."""
    from annotation.models import Round
    from corpus.models import Collection
    from scoring import engine
    from scoring.models import CalibrationDecision
    from scoring.selectors import current_calibration, unfinished_run, verdicts_of
    from scoring.services import calibrate, decide_calibration, start_run, train_baseline

    researcher = User.objects.get(email="researcher@example.org")
    collection = Collection.objects.get(slug=SAMPLE)
    rounds = list(
        Round.objects.filter(collection=collection).exclude(purpose=Round.Purpose.PRACTICE)
    )
    judge = train_baseline(collection=collection, rounds=rounds, actor=researcher)
    run = unfinished_run(judge, collection)
    if run is None and not verdicts_of(judge, collection):
        run = start_run(judge=judge, collection=collection, actor=researcher)
    # Ends at once unless an interrupted demo left a lease behind, which has to lapse first.
    while run is not None and engine.work_on(run.pk) not in ("ended", "halted"):
        continue
    if current_calibration(judge, collection) is None:
        calibration = calibrate(
            judge=judge,
            rounds=rounds,
            actor=researcher,
            reason="To show what a calibration looks like.",
        )
        decide_calibration(
            calibration=calibration,
            decision=CalibrationDecision.Decision.APPROVE,
            reason=APPROVAL,
            actor=researcher,
        )


def free_port(wanted: int) -> int:
    """Return the port, or the next one that nothing listens on."""
    import socket

    for port in range(wanted, min(wanted + PORTS_TRIED, 65536)):
        with socket.socket() as probe:
            # As the server does: a port in TIME_WAIT is free.
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise CommandError(
        f"Ports {wanted} to {wanted + PORTS_TRIED - 1} are in use. Choose another: --port NUMBER"
    )


@contextmanager
def demo_lock(*, exclusive: bool) -> Iterator[None]:
    """Keep a reset from deleting the database under a demo that still serves."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    path = Path(settings.DATA_DIR) / "demo.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="ascii") as handle:
        try:
            kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError("A demo is running. Stop it first (Ctrl-C there).") from error
        yield


def open_nowhere() -> Any:
    """Return a text stream that keeps nothing: the demo says in one word what was loaded."""
    import io

    return io.StringIO()
