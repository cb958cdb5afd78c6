"""Whatever the format allows goes in, comes out the same, and goes in again without a change."""

import shutil
import tempfile
from pathlib import Path

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings

from scoring.transfer import export_bundle, import_source, open_source
from tests.scoring.bundles import contents, write_tables
from tests.scoring.random_bundles import bundles


def check_round_trip(tables):
    """Import, export, compare every byte, import again; leave nothing behind."""
    folder = Path(tempfile.mkdtemp())
    try:
        with transaction.atomic():
            given_folder = write_tables(folder / "given", tables)
            with open_source(given_folder) as source:
                import_source(source)
            slugs = tuple(row["slug"] for row in tables["collections"])
            export_bundle(folder / "out", collections=slugs)
            out, expected = contents(folder / "out"), contents(given_folder)
            # Only those who have a part in the collections are exported with them.
            for table in ("annotators", "respondents", "judges"):
                name = f"{table}.jsonl"
                lines = set(expected.pop(name, b"").splitlines())
                assert set(out.pop(name, b"").splitlines()) <= lines
            del out["manifest.json"], expected["manifest.json"]
            assert out == expected
            with open_source(folder / "out") as source:
                assert not import_source(source).anything
            transaction.set_rollback(True)
    finally:
        shutil.rmtree(folder)


@pytest.mark.django_db
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(tables=bundles())
def test_any_bundle_comes_out_as_it_went_in(tables):
    check_round_trip(tables)


@pytest.mark.long
@pytest.mark.django_db
@settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(tables=bundles())
def test_many_bundles_come_out_as_they_went_in(tables):
    check_round_trip(tables)
