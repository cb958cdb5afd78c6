"""Read settings from the environment and fail loudly on a value that cannot be meant."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


class EnvError(Exception):
    """A setting in the environment has a value that the program cannot use."""


def load_dotenv(path: Path) -> None:
    """Put KEY=value lines of a file into the environment, where they are not set already."""
    if not path.is_file():
        return
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", line)
        if match is None:
            raise EnvError(f"{path.name}, line {number}: expected KEY=value")
        key, value = match[1], match[2]
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        os.environ.setdefault(key, value)


def env_str(name: str, default: str = "") -> str:
    """Return a text setting."""
    return os.environ.get(name, default)


def env_bool(name: str, default: bool) -> bool:
    """Return a yes/no setting."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    value = raw.strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise EnvError(f"{name} must be one of 1, 0, true, false, yes, no; it is {raw!r}")


def env_int(name: str, default: int, *, minimum: int = 0) -> int:
    """Return a whole-number setting."""
    raw = os.environ.get(name)
    if raw is None or raw.strip() == "":
        return default
    try:
        value = int(raw)
    except ValueError as error:
        raise EnvError(f"{name} must be a whole number; it is {raw!r}") from error
    if value < minimum:
        raise EnvError(f"{name} must be at least {minimum}; it is {value}")
    return value


def env_list(name: str, default: list[str]) -> list[str]:
    """Return a comma-separated setting."""
    raw = os.environ.get(name)
    if raw is None:
        return default
    return [part.strip() for part in raw.split(",") if part.strip()]


def env_secret(name: str, file: Path) -> str:
    """Return a secret from the environment, else from a file that only its owner can read."""
    value = os.environ.get(name, "")
    if value:
        if len(value) < 32:
            raise EnvError(f"{name} must have at least 32 characters")
        return value
    if file.is_file():
        return _kept_secret(file)
    import secrets

    file.parent.mkdir(parents=True, exist_ok=True)
    value = secrets.token_urlsafe(48)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _kept_secret(file)
    with os.fdopen(descriptor, "w", encoding="ascii") as handle:
        handle.write(value + "\n")
    return value


def env_choice(name: str, default: str, choices: list[str]) -> str:
    """Return a setting that is one of a few words, whatever its case."""
    value = env_str(name).strip().upper() or default
    if value not in choices:
        raise EnvError(f"{name} must be one of {', '.join(choices)}; it is {value!r}")
    return value


def env_contacts(name: str, default: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return contacts written as "Name: detail; Name: detail"."""
    parts = [part.strip() for part in env_str(name).split(";") if part.strip()]
    contacts = []
    for part in parts:
        who, colon, detail = (word.strip() for word in part.partition(":"))
        if not (who and colon and detail):
            raise EnvError(f'{name} must be "Name: detail; Name: detail"; one part is {part!r}')
        contacts.append({"name": who, "detail": detail})
    return contacts or default


def env_database(name: str, default_file: Path) -> dict[str, Any]:
    """Return a Django DATABASES entry from a URL; SQLite on a file where there is none."""
    raw = os.environ.get(name, "").strip()
    if not raw:
        return _sqlite(default_file)
    parts = urlsplit(raw)
    if parts.scheme == "sqlite":
        path = unquote(parts.path)
        if not path or path == "/":
            raise EnvError(f"{name} must name a file: sqlite:////absolute/path.sqlite3")
        return _sqlite(Path(path[1:] if path.startswith("//") else path))
    if parts.scheme not in {"postgres", "postgresql"}:
        raise EnvError(f"{name} must start with sqlite:// or postgresql://")
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise EnvError(f"{name} must name a database after the host")
    try:
        port = parts.port
    except ValueError as error:
        raise EnvError(f"{name} must have a number as its port") from error
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", None) or unquote(parts.hostname or ""),
        "PORT": options.pop("port", None) or str(port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


def _kept_secret(file: Path) -> str:
    value = file.read_text(encoding="ascii").strip()
    if len(value) < 32:
        raise EnvError(f"{file.name} must have at least 32 characters; delete it to get a new one")
    return value


def _sqlite(path: Path) -> dict[str, Any]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        # A thread keeps its connection: opening one costs more than most requests.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 10,
            # A transaction that will write takes the lock at its start, so that it never has to
            # fail in the middle because another writer came first.
            "transaction_mode": "IMMEDIATE",
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                "PRAGMA cache_size=-32768; PRAGMA temp_store=MEMORY;"
                # Without it INSERT OR REPLACE deletes rows past the guards.
                "PRAGMA recursive_triggers=ON;"
            ),
        },
        "TEST": {"NAME": path.with_name("test_" + path.name)},
    }
