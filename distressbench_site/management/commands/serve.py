"""manage.py serve: the web server, and on the in-memory broker a worker, in one process."""

import errno
import os
import signal
import socket
import sys
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from distressbench_site.management import serving

THREADS = 8
# After a signal, how long requests and the batch in work may take to end.
GRACE_SECONDS = 1.0
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Command(BaseCommand):
    """Serve on this machine until Ctrl-C or SIGTERM.

    With a Redis broker no worker runs in here: start `celery -A distressbench_site worker` beside
    it, as often as wanted.
    """

    help = (
        "Serve the program, with a worker inside. With CELERY_BROKER_URL on Redis, start workers"
        " of their own: celery -A distressbench_site worker"
    )
    # The check of the database's guards is part of handle, where its remedy is said.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the database, bind, serve, stop cleanly."""
        host, port = options["host"], options["port"]
        self._check_database()
        if host not in LOOPBACK:
            self.stderr.write(
                f"Serving on {host}: everybody who reaches this address sees the sign-in page."
                " Put a proxy with HTTPS in front (HTTPS=1, ALLOWED_HOSTS), and never serve"
                " the demo like this."
            )
        serving.collect_static()
        server = self._bind(host, port)
        self._stop_on_signals()
        worker = None
        try:
            if settings.CELERY_BROKER_URL.startswith("memory://"):
                worker = serving.EmbeddedWorker()
                worker.start()
            shown = f"[{host}]" if ":" in host else host
            self.stdout.write(f"Serving at http://{shown}:{port}/ (Ctrl-C stops)")
            self.stdout.flush()
            server.run()
        except (KeyboardInterrupt, SystemExit):
            pass
        finally:
            if worker is not None:
                worker.stop(GRACE_SECONDS)
            server.close()
        self.stdout.write("Stopped.")
        sys.stdout.flush()
        # Threads of a request that hangs, or of the worker in a long batch, end with the process:
        # all that they wrote is committed whole or not at all.
        if threading.active_count() > 1:
            os._exit(0)

    def _check_database(self) -> None:
        try:
            missing = serving.open_migrations()
            guards = [] if missing else serving.missing_guards()
        except OperationalError as error:
            raise CommandError(f"The database cannot be reached: {error}") from error
        if missing:
            raise CommandError(
                f"The database lacks {len(missing)} migrations. Run: manage.py migrate"
            )
        if guards:
            raise CommandError(
                f"The database lacks guards: {', '.join(guards)}. Run: manage.py migrate"
            )

    def _bind(self, host: str, port: int) -> Any:
        from waitress.server import create_server

        from distressbench_site.wsgi import application

        try:
            return create_server(application, host=host, port=port, threads=THREADS, ident=None)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CommandError(
                    f"Port {port} is in use. Choose another one: --port {port + 1}"
                ) from error
            raise CommandError(f"Cannot listen on {host}, port {port}: {error}") from error
        except (ValueError, socket.gaierror) as error:
            raise CommandError(f"Cannot listen on {host}, port {port}: {error}") from error

    def _stop_on_signals(self) -> None:
        def stop(number: int, frame: object) -> None:
            # A second signal finds the default again and ends the process at once.
            signal.signal(number, signal.SIG_DFL)
            raise SystemExit(0)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
