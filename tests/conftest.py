"""What every test has: a database on a file, the guards, a real server, a browser."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import TransactionTestCase, override_settings

from tests.browsing import Browsing, assert_accessible
from tests.program import Program, find_chromium

_programs = pytest.StashKey[list[Program]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this run cannot do, each with its reason."""
    on_sqlite = "sqlite" in settings.DATABASES["default"]["ENGINE"]
    reasons = {
        "browser": None if find_chromium() else "no Chromium found",
        "redis": None if os.environ.get("DISTRESSBENCH_TEST_REDIS") else "no Redis for this run",
        "postgres": "the test database is SQLite" if on_sqlite else None,
        "sqlite": None if on_sqlite else "the test database is PostgreSQL",
    }
    for item in items:
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show with a failure what the serving processes printed."""
    report = yield
    if report.failed:
        for program in item.stash.get(_programs, []):
            report.sections.append((f"log of the program at {program.url}", program.log[-20_000:]))
    return report


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str, testrun_uid: str
) -> None:
    """Give every process its own database; on SQLite a file, as the program has."""
    database = settings.DATABASES["default"]
    if "sqlite" in database["ENGINE"]:
        name = str(tmp_path_factory.mktemp("database") / "test.sqlite3")
    else:
        name = f"test_{testrun_uid[:12]}_{worker_id}"
    database.setdefault("TEST", {})["NAME"] = name


def _flush_and_restore(test: TransactionTestCase) -> None:
    """Empty the tables with the guards lifted, and put back the rows that migrations made."""
    from distressbench_site.accounts.guards import lifted

    for alias in test._databases_names(include_mirrors=False):
        connection = connections[alias]
        with lifted(using=alias):
            call_command(
                "flush",
                verbosity=0,
                interactive=False,
                database=alias,
                reset_sequences=False,
                allow_cascade=True,
                inhibit_post_migrate=True,
            )
            connection.creation.deserialize_db_from_string(connection._test_serialized_contents)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Remember the rows that migrations made."""
    with django_db_blocker.unblock():
        for connection in connections.all():
            content = connection.creation.serialize_db_to_string()
            connection._test_serialized_contents = content


@pytest.fixture(scope="session", autouse=True)
def _flush_under_guards() -> Iterator[None]:
    """Let tests with real transactions clean up after themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", _flush_and_restore)
        yield


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    """Hash passwords quickly in this process; programs that tests start do as they always do."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture
def redis_url() -> str:
    """Return the address of a Redis server that belongs to this run, emptied."""
    import redis

    url = os.environ["DISTRESSBENCH_TEST_REDIS"]
    redis.Redis.from_url(url).flushall()
    return url


@pytest.fixture
def make_program(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., Program]]:
    """Return a maker of installations with their own folder and database; all end with the test."""
    made = request.node.stash.setdefault(_programs, [])

    def make(**environment: str) -> Program:
        program = Program(tmp_path / f"program-{len(made)}", environment)
        made.append(program)
        return program

    yield make
    for program in made:
        program.remove()


@pytest.fixture
def live_program(make_program: Callable[..., Program]) -> Program:
    """Return a migrated installation that serves on loopback."""
    program = make_program()
    program.migrate()
    program.start()
    return program


# One module's browser, not the session's: Playwright keeps an event loop running in this thread,
# in which asyncio.run() of other tests would fail.
@pytest.fixture(scope="module")
def browsing() -> Iterator[Browsing]:
    """Return a running headless Chromium that reaches loopback alone."""
    with Browsing() as browsing:
        yield browsing


@pytest.fixture
def browser(browsing: Browsing) -> Any:
    """Return the Playwright browser, for tests that open several contexts."""
    return browsing.browser


@pytest.fixture
def new_page(browsing: Browsing) -> Iterator[Callable[..., Any]]:
    """Return a maker of pages, each with its own cookies; a fault in any fails the test."""
    with browsing.watched() as new_page:
        yield new_page


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    """Return one page with cookies of its own."""
    return new_page()


@pytest.fixture
def axe() -> Callable[..., None]:
    """Return the check that a page has no accessibility fault, in light and in dark."""
    return assert_accessible
