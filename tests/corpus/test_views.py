"""Pages of the corpus: who may read them, and what they show."""

import pytest
from django.test import Client
from django.urls import reverse

from corpus.models import Conversation, Subcategory
from tests.factories import (
    make_collection,
    make_conversation,
    make_reply,
    make_respondent,
    make_rubric,
    make_user,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher() -> Client:
    return signed_in("researcher")


def signed_in(*roles: str) -> Client:
    client = Client()
    client.force_login(make_user(roles=roles))
    return client


def pages(conversation: Conversation) -> list[str]:
    slug = conversation.collection.slug
    return [
        reverse("collection-list"),
        reverse("collection-detail", args=[slug]),
        reverse("conversation-detail", args=[slug, conversation.pk]),
    ]


@pytest.mark.parametrize("roles", [("researcher",), ("admin",), ("clinician", "researcher")])
def test_researchers_and_admins_read_the_corpus(roles):
    client = signed_in(*roles)
    for url in pages(make_conversation()):
        assert client.get(url).status_code == 200, url


@pytest.mark.parametrize("roles", [("clinician",), ("senior clinician",), ()])
def test_nobody_else_reads_weights_and_respondents(roles):
    client = signed_in(*roles)
    for url in pages(make_conversation()):
        assert client.get(url).status_code == 403, url


def test_anonymous_people_are_asked_to_sign_in():
    for url in pages(make_conversation()):
        response = Client().get(url)
        assert response.status_code == 302
        assert response["Location"].startswith(reverse("account_login"))


def test_the_pages_are_only_read(researcher):
    for url in pages(make_conversation()):
        assert researcher.post(url).status_code == 405, url


def test_unknown_things_are_not_found(researcher):
    conversation = make_conversation()
    other = make_collection()
    for url in (
        reverse("collection-detail", args=["nowhere"]),
        reverse("conversation-detail", args=[conversation.collection.slug, 10**30]),
        # A conversation is found in its own collection alone.
        reverse("conversation-detail", args=[other.slug, conversation.pk]),
    ):
        assert researcher.get(url).status_code == 404, url


def test_the_list_counts_what_is_in_each_collection(researcher):
    collection = make_collection(name="Counted")
    first = make_conversation(collection, criteria=4)
    turns = [{"role": "user", "text": "one"}, {"role": "user", "text": "two"}]
    make_conversation(collection, criteria=3, turns=turns)
    # A retired version and a draft are not counted: 2 new ones in place of the first 4.
    make_rubric(first, ["new", "newer"])
    make_rubric(first, ["draft"], publish=False)
    respondent = make_respondent()
    make_reply(first, respondent)
    make_reply(first, respondent, sample=1)
    summaries = researcher.get(reverse("collection-list")).context["summaries"]
    found = next(s for s in summaries if s.collection == collection)
    assert (found.conversations, found.single_turn, found.multi_turn) == (2, 1, 1)
    assert (found.criteria, found.replies, found.respondents) == (5, 2, 1)


def test_an_empty_collection_says_what_to_do(researcher):
    page = researcher.get(reverse("collection-detail", args=[make_collection().slug]))
    assert "No conversations yet" in page.content.decode()


def test_dimensions_show_their_share_of_the_weight(researcher):
    collection = make_collection()
    make_conversation(
        collection, criteria=2, weights=[15, 5], dimensions=["recognition", "harmless_response"]
    )
    url = reverse("collection-detail", args=[collection.slug])
    rows = {row.dimension.slug: row for row in researcher.get(url).context["dimensions"]}
    # 15 of 20 and 5 of 20.
    assert rows["recognition"].percent == "75 %"
    assert rows["harmless_response"].percent == "25 %"
    assert (rows["de_escalation"].criteria, rows["de_escalation"].percent) == (0, "0 %")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"alpha", "beta", "gamma"}),
        ("q=ALP", {"alpha"}),
        ("turns=multi", {"beta"}),
        ("turns=single", {"alpha", "gamma"}),
        ("status=withdrawn", {"gamma"}),
        ("subcategory=grief", {"beta"}),
        ("subcategory=grief&turns=single", set()),
    ],
)
def test_conversations_are_filtered(researcher, query, expected):
    collection = make_collection(slug="filtered")
    grief = Subcategory.objects.create(collection=collection, slug="grief", name="G", position=2)
    make_conversation(collection, key="alpha")
    make_conversation(
        collection,
        key="beta",
        subcategory=grief,
        turns=[{"role": "user", "text": "one"}, {"role": "user", "text": "two"}],
    )
    make_conversation(collection, key="gamma", status="withdrawn")
    page = researcher.get(reverse("collection-detail", args=["filtered"]) + "?" + query)
    assert {row.conversation.key for row in page.context["rows"]} == expected


@pytest.mark.parametrize(
    "query", ["turns=sideways", "status=lost", "subcategory=elsewhere", "q=" + "x" * 129]
)
def test_a_filter_that_means_nothing_is_refused(researcher, query):
    other = make_collection()
    Subcategory.objects.create(collection=other, slug="elsewhere", name="E", position=9)
    url = reverse("collection-detail", args=[make_conversation().collection.slug])
    page = researcher.get(f"{url}?{query}")
    assert page.status_code == 422
    assert page.context["form"].errors


def test_long_lists_come_in_pages_that_keep_the_filter(researcher):
    collection = make_collection()
    for place in range(51):
        make_conversation(collection, key=f"key-{place:02}", criteria=1)
    url = reverse("collection-detail", args=[collection.slug])
    second = researcher.get(url + "?turns=single&page=2")
    assert [row.conversation.key for row in second.context["rows"]] == ["key-50"]
    assert "?turns=single&amp;page=1" in second.content.decode()
    assert researcher.get(url + "?page=nonsense").status_code == 200


def test_a_conversation_shows_turns_rubric_and_replies(researcher):
    turns = [
        {"role": "user", "text": "First words."},
        {"role": "assistant", "text": "Fixed words."},
        {"role": "user", "text": "Second words."},
        {"role": "user", "text": "Third words."},
    ]
    conversation = make_conversation(
        turns=turns, criteria=["Asks how she is."], weights=[17], dimensions=["recognition"]
    )
    floor = make_respondent(name="Silence", kind="floor")
    make_reply(conversation, floor, turns=["", ""], outcome="empty")
    model = make_respondent(name="Some model")
    make_reply(conversation, model, turns=["<b>Part</b> one.", "Part two."])
    make_reply(conversation, make_respondent(name="Clinicians", kind="reference"))
    url = reverse("conversation-detail", args=[conversation.collection.slug, conversation.pk])
    response = researcher.get(url)
    text = response.content.decode()
    for expected in ("First words.", "Earlier reply, not judged", "weight 17", "Some model"):
        assert expected in text
    assert "&lt;b&gt;Part&lt;/b&gt; one." in text
    assert "Here the respondent speaks, part 2 of 2." in text
    shown = [reply.respondent.name for reply in response.context["page"].replies]
    assert shown == ["Clinicians", "Some model", "Silence"]


def test_a_conversation_without_a_published_rubric_says_so(researcher):
    conversation = make_conversation(criteria=0)
    make_rubric(conversation, ["A draft criterion."], publish=False)
    url = reverse("conversation-detail", args=[conversation.collection.slug, conversation.pk])
    text = researcher.get(url).content.decode()
    assert "No published rubric" in text
    assert "A draft criterion." not in text


def test_a_corrected_conversation_points_to_its_successor(researcher):
    old = make_conversation(key="old")
    new = make_conversation(old.collection, key="new", supersedes=old)
    slug = old.collection.slug
    old_page = researcher.get(reverse("conversation-detail", args=[slug, old.pk]))
    new_page = researcher.get(reverse("conversation-detail", args=[slug, new.pk]))
    assert reverse("conversation-detail", args=[slug, new.pk]) in old_page.content.decode()
    assert reverse("conversation-detail", args=[slug, old.pk]) in new_page.content.decode()


def test_queries_do_not_grow_with_rows(researcher):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    collection = make_collection()
    conversation = make_conversation(collection, criteria=1)
    urls = [*pages(conversation)]

    def add(number):
        for _ in range(number):
            make_conversation(make_collection(), criteria=1)
            other = make_conversation(collection, criteria=2)
            make_reply(other)
            make_reply(conversation)

    def count(url):
        with CaptureQueriesContext(connection) as found:
            assert researcher.get(url).status_code == 200
        return len(found)

    add(10)
    before = [count(url) for url in urls]
    add(10)
    assert [count(url) for url in urls] == before
