"""System checks that look at the database."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.utils import OperationalError

from distressbench_site.accounts import guards


@register(Tags.database)
def guards_stand(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Say which guards are missing from the database."""
    problems: list[CheckMessage] = []
    for alias in databases or []:
        if alias != DEFAULT_DB_ALIAS:
            continue
        try:
            with connections[alias].cursor() as cursor:
                tables = set(connections[alias].introspection.table_names(cursor))
        except OperationalError:
            continue
        if "accounts_auditevent" not in tables:
            continue
        missing = guards.expected(alias) - guards.installed(alias)
        if missing:
            problems.append(
                Error(
                    "The database lacks guards: " + ", ".join(sorted(missing)),
                    hint="Run manage.py migrate: it installs them again.",
                    id="accounts.E001",
                )
            )
    return problems
