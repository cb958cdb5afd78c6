"""A throw-away Redis server: private, on loopback, nothing on disk."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.program import free_port


def find_server() -> str | None:
    """Return the path of a Redis server, or None."""
    named = os.environ.get("DISTRESSBENCH_REDIS_SERVER")
    if named:
        return shutil.which(named)
    return shutil.which("redis-server") or shutil.which("valkey-server")


@contextmanager
def server(path: str) -> Iterator[str]:
    """Run a new server and give its address."""
    password = secrets.token_hex(16)
    process, port = _start(path, password)
    try:
        yield f"redis://:{password}@127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait(15)


def _start(path: str, password: str) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(5):
        port = free_port()
        # The configuration goes in on stdin, where no other user of the machine reads it.
        configuration = (
            f'bind 127.0.0.1\nport {port}\nrequirepass {password}\nsave ""\nappendonly no\n'
        )
        process = subprocess.Popen(
            [path, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(configuration.encode())
        process.stdin.close()
        deadline = time.monotonic() + 15
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return process, port
            time.sleep(0.05)
        process.kill()
        process.wait(15)
    raise RuntimeError("Redis did not start")
