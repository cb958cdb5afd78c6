"""What `manage.py serve` is made of: static files, a worker inside the process, the web server."""

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from distressbench_site.accounts import guards
from distressbench_site.celery import app

logger = logging.getLogger(__name__)

FINGERPRINT = ".fingerprint"


def open_migrations() -> list[str]:
    """Return the migrations that the database lacks."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def missing_guards() -> list[str]:
    """Return the guards that do not stand in the database."""
    return sorted(guards.expected() - guards.installed())


def collect_static() -> bool:
    """Collect the static files if any has changed since the last time; True if it did."""
    marker = Path(settings.STATIC_ROOT) / FINGERPRINT
    now = _fingerprint()
    if marker.is_file() and marker.read_text(encoding="ascii") == now:
        return False
    call_command("collectstatic", interactive=False, verbosity=0)
    marker.write_text(now, encoding="ascii")
    return True


def _fingerprint() -> str:
    parts = hashlib.sha256()
    for name, path in _static_files():
        found = path.stat()
        parts.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return parts.hexdigest()


def _static_files() -> Iterator[tuple[str, Path]]:
    found: dict[str, Path] = {}
    for finder in get_finders():
        for name, storage in finder.list([]):
            found.setdefault(name, Path(storage.path(name)))
    yield from sorted(found.items())


class EmbeddedWorker:
    """A Celery worker in a thread of this process, with the sweep that finds work in tables.

    On the in-memory broker no other process could consume what this one enqueues.
    """

    def __init__(self) -> None:
        # Imported here: the tasks need models, which need the apps to be loaded.
        from scoring import tasks

        self._tasks = tasks
        self._stop = threading.Event()
        self._worker = app.WorkController(
            app=app,
            hostname="serve@localhost",
            pool_cls="solo",
            concurrency=1,
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
        )
        self._threads = [
            # Daemons: what they commit is whole, so that nothing needs to wait for a batch.
            threading.Thread(target=self._consume, name="worker", daemon=True),
            threading.Thread(
                target=tasks.keep_sweeping, args=(self._stop,), name="sweep", daemon=True
            ),
        ]

    def start(self) -> None:
        """Consume tasks from now on."""
        # A line for each sweep would bury what matters in the terminal.
        logging.getLogger("celery").setLevel(logging.WARNING)
        # It would miss a host in the address of a broker that has none.
        logging.getLogger("kombu.connection").setLevel(logging.ERROR)
        self._tasks.stopping.clear()
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> None:
        """Let the task in work end after its batch, but wait no longer than this."""
        from celery.worker import state

        self._tasks.stopping.set()
        self._stop.set()
        # What a worker of its own process is told by a signal.
        setattr(state, "should_stop", 0)  # noqa: B010
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _consume(self) -> None:
        try:
            self._worker.start()
        except SystemExit:
            pass
        except Exception:
            logger.exception("the worker inside this process has ended")
