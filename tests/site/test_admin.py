"""The admin site: names are edited, and whose account a pseudonym is; everything else is read."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from annotation.models import Annotator
from corpus.models import Dimension
from distressbench_site.accounts.models import AuditEvent
from tests.factories import (
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_user,
)

pytestmark = pytest.mark.django_db
APPS = ("accounts", "annotation", "corpus", "scoring")


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(make_user(roles=["admin"], is_staff=True))
    return client


def models():
    found = [m for m in admin.site._registry if m._meta.app_label in APPS]
    return sorted(found, key=lambda model: model._meta.label)


def admin_url(model, name, *args):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def test_admins_read_every_table_and_add_or_delete_nothing(client):
    reply = make_reply()
    assert {model._meta.app_label for model in models()} == set(APPS)
    for model in models():
        assert client.get(admin_url(model, "changelist")).status_code == 200, model
        assert client.get(admin_url(model, "add")).status_code == 403, model
    for row in (reply, reply.conversation, reply.conversation.collection):
        url = admin_url(type(row), "delete", row.pk)
        assert client.post(url, {"post": "yes"}).status_code == 403
        assert type(row).objects.filter(pk=row.pk).exists()


def test_each_row_can_be_looked_at(client):
    conversation = make_conversation()
    make_reply(conversation)
    rubric = conversation.rubrics.get()
    for row in (conversation, rubric, conversation.criteria.first(), conversation.replies.get()):
        assert client.get(admin_url(type(row), "change", row.pk)).status_code == 200


def test_a_dimension_is_renamed_and_the_change_is_kept(client):
    dimension = make_collection().dimensions.get(slug="recognition")
    url = admin_url(Dimension, "change", dimension.pk)
    sent = {"name": "Noticing", "description": "Sees it.", "stance": "withhold", "slug": "x"}
    assert client.post(url, sent).status_code == 302
    dimension.refresh_from_db()
    assert (dimension.name, dimension.description) == ("Noticing", "Sees it.")
    # The stance and the slug are not among the fields that are read from the form.
    assert (dimension.stance, dimension.slug) == ("act", "recognition")
    event = AuditEvent.objects.get(action="wording changed")
    assert event.detail["before"]["name"] == "Recognition"
    assert event.detail["after"]["name"] == "Noticing"


def test_content_is_not_changed_by_a_forged_form(client):
    conversation = make_conversation(key="kept")
    url = admin_url(type(conversation), "change", conversation.pk)
    assert client.post(url, {"key": "other"}).status_code == 403
    conversation.refresh_from_db()
    assert conversation.key == "kept"


def test_other_staff_see_nothing(client):
    client.force_login(make_user(roles=["researcher"], is_staff=True))
    for model in models():
        assert client.get(admin_url(model, "changelist")).status_code == 403, model


def test_an_account_is_linked_to_a_pseudonym_that_came_without(client):
    annotator, user = make_annotator(), make_user(roles=["clinician"])
    sent = {"pseudonym": "another", "user": user.pk}

    assert client.post(admin_url(Annotator, "change", annotator.pk), sent).status_code == 302

    before = annotator.pseudonym
    annotator.refresh_from_db()
    assert (annotator.pseudonym, annotator.user) == (before, user)
