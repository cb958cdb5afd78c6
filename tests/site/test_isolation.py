"""Tests leave nothing behind for each other, and the rules of the database stand in all of them."""

import os

import pytest
from django.db import DatabaseError, connection

from corpus.models import Dimension
from distressbench_site.accounts.guards import expected, installed
from distressbench_site.accounts.models import AuditEvent


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", ["before", "after"])
def test_real_transactions_leave_the_seeded_rows_and_the_guards(turn: str) -> None:
    assert Dimension.objects.filter(collection__slug="distressbench").count() == 7
    assert expected() <= installed()
    assert AuditEvent.objects.count() == 0

    event = AuditEvent.objects.create(action=turn)
    with pytest.raises(DatabaseError):
        AuditEvent.objects.filter(pk=event.pk).delete()


@pytest.mark.sqlite
@pytest.mark.django_db
def test_the_test_database_on_sqlite_is_a_file_of_this_process() -> None:
    assert os.path.isfile(connection.settings_dict["NAME"])
