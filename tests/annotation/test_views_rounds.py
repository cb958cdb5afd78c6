"""The pages of rounds and of agreement: for researchers and admins, and for nobody else."""

import csv
import io
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation import services
from annotation.models import Label, Round
from tests.factories import (
    label_item,
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_respondent,
    make_round,
    make_user,
)

pytestmark = pytest.mark.django_db


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


class Cast:
    """A researcher and an admin, a clinician in a round of three replies, others outside."""

    def __init__(self):
        self.researcher = make_user(roles=["researcher"])
        self.admin = make_user(roles=["admin"])
        self.clinician = make_user(roles=["clinician"], name="Alice Archer")
        self.other = make_user(roles=["clinician", "senior clinician"], name="Bob Baker")
        self.collection = make_collection(slug="cast")
        self.respondents = [make_respondent(slug="model-a"), make_respondent(slug="model-b")]
        self.conversations = [make_conversation(self.collection, key=f"key-{n}") for n in range(3)]
        self.replies = [make_reply(c, r) for c in self.conversations for r in self.respondents]
        self.annotator = make_annotator(self.clinician, pseudonym="clinician-one")
        self.round = make_round(
            self.replies[:3], [self.annotator], overlap=1, status="draft", name="Round one"
        )


@pytest.fixture
def cast():
    return Cast()


@pytest.fixture
def researcher(cast):
    return client_of(cast.researcher)


def form_of(cast, **changes):
    return {
        "name": "A new round",
        "purpose": "calibration",
        "respondents": [r.pk for r in cast.respondents],
        "overlap": "2",
        "people": [cast.clinician.pk],
        "guidelines": "Read *all*.",
    } | changes


def create_url(cast):
    return reverse("round-create") + f"?collection={cast.collection.slug}"


def test_the_list_shows_rounds_with_their_progress(researcher, cast):
    text = researcher.get(reverse("round-list")).content.decode()
    assert "Round one" in text
    assert "0 of 3" in text


def test_the_list_without_rounds_leads_to_the_first():
    text = client_of(make_user(roles=["researcher"])).get(reverse("round-list")).content.decode()
    assert "No round yet" in text
    assert reverse("round-create") in text


def test_a_round_is_made_from_respondents(researcher, cast):
    response = researcher.post(
        create_url(cast), form_of(cast, respondents=[cast.respondents[0].pk])
    )
    made = Round.objects.get(name="A new round")
    assert response["Location"] == reverse("round-detail", args=[made.pk])
    assert made.status == "draft"
    assert {i.reply for i in made.items.all()} == {
        reply for reply in cast.replies if reply.respondent == cast.respondents[0]
    }
    assert [m.annotator for m in made.members.all()] == [cast.annotator]


def test_a_round_takes_the_first_replies_in_order(researcher, cast):
    researcher.post(create_url(cast), form_of(cast, first="4"))
    made = Round.objects.get(name="A new round")
    assert {i.reply for i in made.items.all()} == set(cast.replies[:4])


def test_a_round_takes_only_the_chosen_subcategories(researcher, cast):
    other = cast.collection.subcategories.create(slug="other", name="Other", position=2)
    conversation = make_conversation(cast.collection, subcategory=other)
    reply = make_reply(conversation, cast.respondents[0])
    researcher.post(create_url(cast), form_of(cast, subcategories=[other.pk]))
    made = Round.objects.get(name="A new round")
    assert [i.reply for i in made.items.all()] == [reply]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "Round one"},
        {"purpose": "fun"},
        {"respondents": []},
        {"respondents": [999_999]},
        {"overlap": "0"},
        {"overlap": "11"},
        {"overlap": "two"},
        {"first": "0"},
        {"people": [999_999]},
        {"name": "nul \x00"},
    ],
)
def test_a_round_that_cannot_be_is_422_and_keeps_what_was_typed(researcher, cast, changes):
    response = researcher.post(create_url(cast), form_of(cast, **changes))
    assert response.status_code == 422
    assert "Read *all*." in response.content.decode()
    assert Round.objects.count() == 1


def test_a_researcher_cannot_be_chosen_to_label(researcher, cast):
    response = researcher.post(create_url(cast), form_of(cast, people=[cast.researcher.pk]))
    assert response.status_code == 422


def test_an_unknown_collection_is_404(researcher):
    assert researcher.get(reverse("round-create") + "?collection=nowhere").status_code == 404


def test_making_a_round_without_anything_to_label_says_so():
    text = client_of(make_user(roles=["researcher"])).get(reverse("round-create")).content.decode()
    assert "No reply to label yet" in text


def test_the_detail_shows_each_clinician_by_pseudonym(researcher, cast):
    services.open_round(round_id=cast.round.pk, actor=cast.researcher)
    label_item(cast.round.items.first(), cast.annotator)
    text = researcher.get(reverse("round-detail", args=[cast.round.pk])).content.decode()
    assert "clinician-one" in text
    row = text[text.index("clinician-one") :]
    assert re.search(r'data-label="Submitted"[^>]*>1<', row)


def test_a_round_opens_pauses_opens_again_and_closes(researcher, cast):
    for act, state in (
        ("open", "open"),
        ("pause", "paused"),
        ("open", "open"),
        ("close", "closed"),
    ):
        response = researcher.post(reverse(f"round-{act}", args=[cast.round.pk]))
        cast.round.refresh_from_db()
        assert (response.status_code, cast.round.status) == (302, state)


def test_a_closed_round_does_not_open_again(researcher, cast):
    services.open_round(round_id=cast.round.pk, actor=cast.researcher)
    services.close_round(round_id=cast.round.pk, actor=cast.researcher)
    response = researcher.post(reverse("round-open", args=[cast.round.pk]))
    cast.round.refresh_from_db()
    assert (response.status_code, cast.round.status) == (422, "closed")


def test_the_overlap_changes(researcher, cast):
    researcher.post(reverse("round-overlap", args=[cast.round.pk]), {"overlap": "3"})
    cast.round.refresh_from_db()
    assert cast.round.overlap == 3
    assert cast.round.items.first().slots.count() == 3


@pytest.mark.parametrize("value", ["", "0", "11", "x"])
def test_an_overlap_that_cannot_be_is_422(researcher, cast, value):
    response = researcher.post(reverse("round-overlap", args=[cast.round.pk]), {"overlap": value})
    assert response.status_code == 422


def test_members_come_and_go(researcher, cast):
    add = reverse("round-member-add", args=[cast.round.pk])
    assert researcher.post(add, {"person": cast.other.pk}).status_code == 302
    member = cast.round.members.get(annotator__user=cast.other)
    assert member.active
    remove = reverse("round-member-remove", args=[cast.round.pk, member.annotator_id])
    assert researcher.post(remove).status_code == 302
    member.refresh_from_db()
    assert not member.active


def test_a_member_who_is_no_clinician_is_422(researcher, cast):
    add = reverse("round-member-add", args=[cast.round.pk])
    assert researcher.post(add, {"person": cast.researcher.pk}).status_code == 422


def test_removing_somebody_who_is_no_member_is_404(researcher, cast):
    outside = make_annotator()
    url = reverse("round-member-remove", args=[cast.round.pk, outside.pk])
    assert researcher.post(url).status_code == 404


def label_all(made, annotator, answers=None):
    """Label every reply of a round as one annotator; `answers` gives them by criterion's key."""
    number = 0
    while assignment := services.claim_next(round_id=made.pk, annotator=annotator):
        wanted = answers(number) if answers else {}
        number += 1
        for seq, asked in enumerate(assignment.round_item.asked.select_related("criterion")):
            value = wanted.get(asked.criterion.key, "met")
            services.save_label(
                assignment_id=assignment.pk,
                annotator=annotator,
                criterion_id=asked.criterion_id,
                client="test",
                seq=seq,
                value=value,
                reason="reply_ambiguous" if value == "cannot_tell" else "",
            )
        services.submit_assignment(assignment_id=assignment.pk, annotator=annotator)


def agreeing_round(cast, conversations=6):
    """Return a round where two clinicians labelled every reply, with one disagreement."""
    other = make_annotator(cast.other, pseudonym="clinician-two")
    replies = [
        make_reply(make_conversation(cast.collection, criteria=7), cast.respondents[0])
        for _ in range(conversations)
    ]
    made = make_round(replies, [cast.annotator, other], overlap=2, name="Both")
    label_all(made, cast.annotator, lambda n: {"c01": "not_met", "c02": ["met", "not_met"][n % 2]})
    label_all(made, other, lambda n: {"c01": "not_met", "c04": "cannot_tell"})
    return made


def test_agreement_shows_the_numbers_of_the_panel(researcher, cast):
    import numpy as np

    from annotation import selectors
    from annotation.agreement import MET, NOT_MET
    from annotation.agreement.coefficients import krippendorff_alpha

    made = agreeing_round(cast)
    text = researcher.get(reverse("round-agreement", args=[made.pk])).content.decode()
    # Each unit's two answers, counted by hand from the table of labels.
    counts = {}
    for label in Label.objects.filter(assignment__round_item__round=made):
        unit = counts.setdefault((label.assignment.round_item_id, label.criterion_id), [0, 0])
        if label.value in {"met", "not_met"}:
            unit[MET if label.value == "met" else NOT_MET] += 1
    alpha = krippendorff_alpha(np.array(list(counts.values()))).value
    assert f'<span class="big">{alpha:.2f}</span>' in text
    assert "2 clinicians" in text
    assert "6 conversations" in text
    for slug in ("Recognition", "Harmless response", "All dimensions"):
        assert slug in text
    assert selectors.labels_digest([made.pk])[:4] in text or "Labels up to event" in text


def test_agreement_of_nothing_is_undefined_with_reasons(researcher, cast):
    text = researcher.get(reverse("round-agreement", args=[cast.round.pk])).content.decode()
    assert text.count('class="big undefined"') == 4
    assert "no criterion has been answered by two people" in text
    assert not re.search(r"\bnan\b", re.sub("<[^>]+>", " ", text), re.I)


def test_one_answer_everywhere_leaves_alpha_undefined_but_not_ac1(researcher, cast):
    other = make_annotator(cast.other)
    replies = [
        make_reply(make_conversation(cast.collection, criteria=3), cast.respondents[0])
        for _ in range(6)
    ]
    made = make_round(replies, [cast.annotator, other], overlap=2)
    label_all(made, cast.annotator)
    label_all(made, other)
    text = researcher.get(reverse("round-agreement", args=[made.pk])).content.decode()
    assert "everybody gave the same answer everywhere" in text
    assert '<span class="big">1.00</span>' in text


def test_the_csv_has_every_label_and_no_formula(researcher, cast):
    services.open_round(round_id=cast.round.pk, actor=cast.researcher)
    item = cast.round.items.first()
    assignment = label_item(item, cast.annotator, submit=False)
    services.save_label(
        assignment_id=assignment.pk,
        annotator=cast.annotator,
        criterion_id=item.asked.first().criterion_id,
        client="x",
        seq=1,
        value="met",
        comment='=HYPERLINK("http://example.org")',
    )
    response = researcher.get(reverse("round-labels-csv", args=[cast.round.pk]))
    assert response["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert len(rows) == Label.objects.count() == item.asked.count()
    assert {row["annotator"] for row in rows} == {"clinician-one"}
    assert {row["value"] for row in rows} == {"met"}
    assert {row["dimension"] for row in rows} <= {d.slug for d in cast.collection.dimensions.all()}
    comment = next(row["comment"] for row in rows if row["comment"])
    assert comment == '\'=HYPERLINK("http://example.org")'
    assert "Alice" not in str(rows)


def urls_of(cast):
    """Return every URL of rounds with its methods."""
    one = [cast.round.pk]
    return [
        ({"get"}, reverse("round-list")),
        ({"get", "post"}, reverse("round-create")),
        ({"get"}, reverse("round-detail", args=one)),
        ({"get"}, reverse("round-agreement", args=one)),
        ({"get"}, reverse("round-labels-csv", args=one)),
        *(
            ({"post"}, reverse(f"round-{act}", args=one))
            for act in ("open", "pause", "close", "overlap", "member-add")
        ),
        ({"post"}, reverse("round-member-remove", args=[cast.round.pk, cast.annotator.pk])),
    ]


def test_anonymous_people_are_asked_to_sign_in(cast):
    for methods, url in urls_of(cast):
        for method in methods:
            response = getattr(Client(), method)(url)
            assert response.status_code == 302, url
            assert response["Location"].startswith(reverse("account_login"))


def test_clinicians_get_403(cast):
    client = client_of(cast.clinician)
    for methods, url in urls_of(cast):
        for method in methods:
            assert getattr(client, method)(url).status_code == 403, url


def test_admins_see_what_researchers_see(cast):
    client = client_of(cast.admin)
    for methods, url in urls_of(cast):
        if "get" in methods:
            assert client.get(url).status_code == 200, url


def test_the_wrong_method_is_405(researcher, cast):
    for methods, url in urls_of(cast):
        for method in {"get", "post", "put"} - methods:
            assert getattr(researcher, method)(url).status_code == 405, url


def test_a_round_that_is_not_there_is_404(researcher):
    for name in ("round-detail", "round-agreement", "round-labels-csv"):
        assert researcher.get(reverse(name, args=[999_999])).status_code == 404
    for act in ("open", "pause", "close", "overlap", "member-add"):
        assert researcher.post(reverse(f"round-{act}", args=[999_999])).status_code == 404


def queries_of(client, url):
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


def test_queries_of_the_list_do_not_grow_with_rounds(researcher, cast):
    counts = []
    for more in (1, 6):
        for _ in range(more):
            make_round(cast.replies[:2], [cast.annotator])
        counts.append(queries_of(researcher, reverse("round-list")))
    assert counts[0] == counts[1]


def test_queries_of_the_detail_do_not_grow_with_clinicians(researcher, cast):
    counts = []
    for more in (1, 8):
        for _ in range(more):
            services.add_member(
                round_id=cast.round.pk, annotator=make_annotator(), actor=cast.researcher
            )
        counts.append(queries_of(researcher, reverse("round-detail", args=[cast.round.pk])))
    assert counts[0] == counts[1]
