"""Real installations for tests: processes of manage.py with a folder and database of their own."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECRET_KEY = "only-for-tests-" + "0123456789abcdef" * 3

# A database file with all tables and the rows that migrations make.
_migrated: bytes | None = None


def find_chromium() -> str | None:
    """Return the browser that tests may drive, or None."""
    named = os.environ.get("DISTRESSBENCH_CHROMIUM")
    if named:
        return shutil.which(named)
    found = (shutil.which(name) for name in CHROMIUM_NAMES)
    mac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    return next((path for path in found if path), shutil.which(mac))


def free_port() -> int:
    """Return a loopback port that nothing uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Program:
    """One installation: manage.py commands and a serving process on the same database.

    It follows the engine of the test run: SQLite in its own folder, else a new PostgreSQL database
    beside the tests' own.
    """

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log_path = folder / "serve.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._database: str | None = None
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DJANGO_ALLOW_ASYNC_UNSAFE", "DJANGO_SETTINGS_MODULE"}
        }
        self.environment = {
            **kept,
            "SECRET_KEY": SECRET_KEY,
            "DEBUG": "0",
            "CELERY_BROKER_URL": "memory://",
            "DISTRESSBENCH_DATA": str(folder / "data"),
            "DATABASE_URL": self._database_url(),
            "PYTHONUNBUFFERED": "1",
            **(environment or {}),
        }

    @property
    def url(self) -> str:
        """Return the address of the serving process, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """Return all that the serving process has printed."""
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def manage(
        self, *arguments: str, check: bool = True, input: str | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a manage.py command to its end; with `check`, a failure shows its output."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            input=input,
            timeout=timeout,
        )
        if check and done.returncode != 0:
            shown = f"manage.py {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
            raise AssertionError(f"exit {done.returncode} from {shown}")
        return done

    def migrate(self) -> None:
        """Make the tables; on SQLite once for this process, and later by copying its file."""
        global _migrated
        path = self._database_file()
        if path is None:
            self.manage("migrate", "--verbosity", "0")
        elif _migrated is None:
            self.manage("migrate", "--verbosity", "0")
            _migrated = path.read_bytes()
        else:
            path.write_bytes(_migrated)

    def _database_file(self) -> Path | None:
        url = self.environment["DATABASE_URL"]
        return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None

    def spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a manage.py command and return it running; its output joins the log."""
        if self._log is None:
            self._log = self.log_path.open("ab")
        return subprocess.Popen(
            [*_dying_with_the_tests(), sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            # A group of its own: a kill takes what it started too, and a Ctrl-C of the tests is
            # not also sent to it.
            start_new_session=True,
        )

    def start(self, timeout: float = 60) -> None:
        """Serve, and return when the program says that it is healthy."""
        assert self.process is None, "the program is serving already"
        self.process = self.spawn("serve", "--host", "127.0.0.1", "--port", str(self.port))
        deadline = time.monotonic() + timeout
        while not self.is_healthy():
            if self.process.poll() is not None:
                raise AssertionError(f"serve ended with {self.process.returncode}:\n{self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"serve was not healthy in {timeout:.0f} s:\n{self.log}")
            time.sleep(0.05)

    def is_healthy(self) -> bool:
        """Tell whether /healthz answers 200."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def kill(self) -> None:
        """End the serving process and what it started at once, as kill -9 or a power cut does."""
        assert self.process is not None, "the program is not serving"
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self.process = None

    def stop(self, timeout: float = 30) -> int:
        """Ask the serving process to end (SIGTERM) and return its exit code."""
        assert self.process is not None, "the program is not serving"
        self.process.terminate()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"serve did not stop in {timeout:.0f} s:\n{self.log}") from None
        self.process = None
        return code

    def restart(self) -> None:
        """Kill the serving process and serve again at the same address."""
        self.kill()
        self.start()

    def remove(self) -> None:
        """End the serving process and drop the database."""
        if self.process is not None:
            self.kill()
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._database is not None:
            _on_server(f'DROP DATABASE IF EXISTS "{self._database}" WITH (FORCE)')

    def _database_url(self) -> str:
        if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
            return f"sqlite:///{self.folder.resolve() / 'distressbench.sqlite3'}"
        self._database = f"program_{secrets.token_hex(6)}"
        _on_server(f'CREATE DATABASE "{self._database}"')
        server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
        return f"{server}/{self._database}"


def _dying_with_the_tests() -> list[str]:
    """Return a prefix, where the system has one, that leaves nothing running after killed tests."""
    setpriv = shutil.which("setpriv")
    # The kernel watches the thread that started a process, so it must be one that lasts.
    if setpriv is None or threading.current_thread() is not threading.main_thread():
        return []
    return [setpriv, "--pdeathsig", "KILL", "--"]


def _on_server(statement: str) -> None:
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(statement.encode())
