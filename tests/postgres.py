"""A throw-away PostgreSQL cluster: private, on loopback, gone when the tests end."""

import glob
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.program import free_port

# Where packages put what is not on the PATH: Debian and Ubuntu, Fedora, Homebrew, Postgres.app.
FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
# Fast, as nobody needs the cluster after a crash of the machine; a commit still outlives a killed
# server.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "unix_socket_directories": "",
}


def find_bin() -> Path | None:
    """Return the folder of the newest PostgreSQL installation, or None."""
    named = os.environ.get("DISTRESSBENCH_POSTGRES_BIN")
    if named:
        return Path(named) if _has_server(Path(named)) else None
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve().parent] if on_path else []
    for pattern in FOLDERS:
        found += sorted(map(Path, glob.glob(pattern)), key=_version, reverse=True)
    return next((folder for folder in found if _has_server(folder)), None)


@contextmanager
def cluster(bin_folder: Path) -> Iterator[str]:
    """Run a new cluster and give the DATABASE_URL of its empty database."""
    owner = _owner()
    # PostgreSQL refuses to run as root, and its user must be able to reach the folder.
    parent = "/tmp" if owner else None
    folder = Path(tempfile.mkdtemp(prefix="distressbench-postgres-", dir=parent))
    process: subprocess.Popen[bytes] | None = None
    try:
        password = secrets.token_hex(16)
        _initialise(bin_folder, folder, password, owner)
        process, port = _start(bin_folder, folder, owner)
        yield f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
    finally:
        if process is not None:
            _stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _initialise(bin_folder: Path, folder: Path, password: str, owner: dict[str, Any]) -> None:
    secret = folder / "password"
    secret.write_text(password, encoding="ascii")
    if owner:
        os.chown(folder, owner["user"], owner["group"])
        os.chown(secret, owner["user"], owner["group"])
    command = [bin_folder / "initdb", "--pgdata", folder / "data", "--username=postgres"]
    command += ["--encoding=UTF8", "--locale=C", "--no-sync", "--auth=scram-sha-256"]
    done = subprocess.run(
        [*map(str, command), f"--pwfile={secret}"],
        cwd=folder,
        capture_output=True,
        text=True,
        **owner,
    )
    if done.returncode != 0:
        raise RuntimeError(f"initdb failed:\n{done.stdout}\n{done.stderr}")


def _start(
    bin_folder: Path, folder: Path, owner: dict[str, Any]
) -> tuple[subprocess.Popen[bytes], int]:
    log = folder / "log"
    # A port that was free may be taken before the server has it, so a few are tried.
    for _ in range(5):
        port = free_port()
        command = [str(bin_folder / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches the tests first, which stop the server when they are done.
                start_new_session=True,
                **owner,
            )
        if _is_ready(bin_folder, port, process):
            return process, port
        _stop(process)
    raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text(errors='replace')}")


def _is_ready(bin_folder: Path, port: int, process: subprocess.Popen[bytes]) -> bool:
    command = [str(bin_folder / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        if subprocess.run(command).returncode == 0:
            return True
        time.sleep(0.1)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    # SIGQUIT: stop now; nothing in this cluster is needed again.
    process.send_signal(3)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(15)


def _owner() -> dict[str, Any]:
    """Return the arguments that run a command as an unprivileged user, when this is root."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _has_server(folder: Path) -> bool:
    return all(shutil.which(name, path=folder) for name in ("initdb", "postgres", "pg_isready"))


def _version(folder: Path) -> list[int]:
    digits = "".join(character if character.isdigit() else " " for character in str(folder))
    return [int(part) for part in digits.split()]
