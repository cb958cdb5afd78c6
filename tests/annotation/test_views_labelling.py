"""The labelling pages: one cast, each page for those it is for and for nobody else."""

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation import services
from annotation.models import Assignment, AssignmentEvent, Label, LabelEvent
from tests.factories import (
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_respondent,
    make_round,
    make_user,
)

pytestmark = pytest.mark.django_db
HTMX = {"HTTP_HX_REQUEST": "true"}


class Cast:
    """An annotator with a round of two replies, somebody else in it, and people outside."""

    def __init__(self):
        collection = make_collection(slug="cast")
        self.respondent = make_respondent(slug="secret-model-x", name="Secret Model X")
        conversation = make_conversation(
            collection,
            key="cast-key-one",
            turns=[
                {"role": "user", "text": "First message."},
                {"role": "assistant", "text": "A fixed answer."},
                {"role": "user", "text": "Second message."},
                {"role": "user", "text": "Third message."},
            ],
            criteria=["Names the <danger> & stays.", "Gives a contact.", "Does not judge."],
            weights=[13, 17, 19],
            dimensions=["recognition", "actionable_resources", "moral_judgement"],
        )
        other = make_conversation(collection)
        self.replies = [
            make_reply(conversation, self.respondent, turns=["Part <one>.", "Part two."]),
            make_reply(other, self.respondent),
        ]
        self.user = make_user(roles=["clinician"], name="Alice Archer")
        self.other_user = make_user(roles=["clinician"], name="Bob Baker")
        self.annotator = make_annotator(self.user)
        self.other = make_annotator(self.other_user, pseudonym="clinician-other")
        self.stranger = make_user(roles=["clinician"], name="Charlie")
        make_annotator(self.stranger)
        self.researcher = make_user(roles=["researcher"])
        self.round = make_round(
            [self.replies[0]], [self.annotator, self.other], overlap=2, guidelines="## Read *all*"
        )

    def claim(self, annotator=None):
        return services.claim_next(round_id=self.round.pk, annotator=annotator or self.annotator)


@pytest.fixture
def cast():
    return Cast()


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def alice(cast):
    return client_of(cast.user)


@pytest.fixture
def assignment(cast):
    return cast.claim()


def save_url(assignment, number=0):
    asked = assignment.round_item.asked.all()[number]
    return reverse("label-save", args=[assignment.pk, asked.criterion_id])


def answer_all(client, assignment, value="met"):
    for number in range(assignment.round_item.asked.count()):
        client.post(save_url(assignment, number), {"value": value})


def test_home_shows_my_rounds_with_one_way_on(alice, cast):
    page = alice.get(reverse("labelling-home"))
    assert page.status_code == 200
    text = page.content.decode()
    assert cast.round.name in text
    assert text.count("Label the next reply") == 1


def test_home_without_rounds_says_so(cast):
    page = client_of(cast.stranger).get(reverse("labelling-home"))
    assert "No round for you yet" in page.content.decode()


def test_home_of_somebody_who_never_labelled_writes_nothing(cast):
    newcomer = make_user(roles=["clinician"])
    page = client_of(newcomer).get(reverse("labelling-home"))
    assert page.status_code == 200
    assert not hasattr(newcomer, "annotator")


def test_next_takes_a_reply_and_opens_it(alice, cast):
    response = alice.post(reverse("labelling-next", args=[cast.round.pk]))
    taken = Assignment.objects.get(annotator=cast.annotator)
    assert response["Location"] == reverse("assignment-detail", args=[taken.pk])


def test_next_resumes_the_reply_in_progress(alice, cast, assignment):
    response = alice.post(reverse("labelling-next", args=[cast.round.pk]))
    assert response["Location"] == reverse("assignment-detail", args=[assignment.pk])


def test_when_nothing_is_left_a_calm_page_says_so(alice, cast, assignment):
    answer_all(alice, assignment)
    response = alice.post(reverse("assignment-submit", args=[assignment.pk]), follow=True)
    text = response.content.decode()
    assert "Nothing left for you here" in text
    assert response.redirect_chain[-1][0].startswith(
        reverse("labelling-round", args=[cast.round.pk])
    )


def test_the_page_marks_whose_turn_is_whose(alice, assignment):
    text = alice.get(reverse("assignment-detail", args=[assignment.pk])).content.decode()
    shown = [
        " ".join(re.sub("<[^>]+>", " ", who).split())
        for who in re.findall(r'<p class="who">(.*?)</p>', text, re.S)
    ]
    assert shown == [
        "1 · Person",
        "2 · Earlier reply, not judged",
        "3 · Person",
        "4 · Reply you are judging part 1 of 2",
        "5 · Person",
        "6 · Reply you are judging part 2 of 2",
    ]


def test_no_answer_is_chosen_beforehand(alice, assignment):
    text = alice.get(reverse("assignment-detail", args=[assignment.pk])).content.decode()
    assert text.count('type="radio"') == 9
    assert " checked" not in text


def test_text_of_data_is_never_html(alice, assignment):
    text = alice.get(reverse("assignment-detail", args=[assignment.pk])).content.decode()
    assert "Part &lt;one&gt;." in text
    assert "Names the &lt;danger&gt; &amp; stays." in text


def test_guidelines_are_shown_as_safe_markdown(cast):
    services.pause_round(round_id=cast.round.pk, actor=cast.researcher)
    risky = make_round(
        [cast.replies[1]],
        [cast.annotator],
        guidelines="# Read\n\n**all** <script>alert(1)</script> [x](javascript:alert(1)) ![i](https://e.org/i.png)",
    )
    taken = services.claim_next(round_id=risky.pk, annotator=cast.annotator)
    text = client_of(cast.user).get(reverse("assignment-detail", args=[taken.pk])).content.decode()
    assert "<strong>all</strong>" in text
    assert "<script>alert" not in text
    assert not re.search(r"(href|src)=.(javascript:|https://e\.org)", text)
    assert "<img" not in text


def test_nothing_that_blinds_is_in_the_response(alice, cast, assignment):
    theirs = cast.claim(cast.other)
    for seq, asked in enumerate(theirs.round_item.asked.all()):
        services.save_label(
            assignment_id=theirs.pk,
            annotator=cast.other,
            criterion_id=asked.criterion_id,
            client="x",
            seq=seq,
            value="not_met",
            comment="A remark of somebody else",
        )
    services.submit_assignment(assignment_id=theirs.pk, annotator=cast.other)
    pages = [
        alice.get(reverse("labelling-home")),
        alice.get(reverse("assignment-detail", args=[assignment.pk])),
        alice.post(save_url(assignment), {"value": "met"}, **HTMX),
        alice.get(reverse("labelling-round", args=[cast.round.pk])),
    ]
    for page in pages:
        whole = page.content.decode() + str(page.headers) + str(page.cookies)
        for secret in ("secret-model-x", "Secret Model X", "clinician-other", "A remark", "Bob"):
            assert secret not in whole
        assert "no-store" in page["Cache-Control"]
    detail = pages[1].content.decode()
    assert not re.search(r"weight|probability|verdict|respondent", detail, re.I)
    main = detail[detail.index("<main") : detail.index("</main>")]
    visible = re.sub("<[^>]+>", " ", main)
    for weight in ("13", "17", "19"):
        assert not re.search(rf"\b{weight}\b", visible)


def test_a_save_with_htmx_returns_the_state_and_no_page(alice, assignment):
    response = alice.post(
        save_url(assignment), {"value": "met", "client": "tab-1", "seq": "7"}, **HTMX
    )
    text = response.content.decode()
    assert response.status_code == 200
    assert 'data-state="saved"' in text
    assert "1 of 3" in text
    assert "2 criteria left" in text
    assert "<html" not in text
    assert json.loads(response["HX-Trigger"])["announce"].startswith("Saved")
    event = LabelEvent.objects.get()
    assert (event.client, event.seq, event.value) == ("tab-1", 7, "met")


def test_a_save_sent_twice_is_kept_once(alice, assignment):
    data = {"value": "met", "client": "tab-1", "seq": "7"}
    for _ in range(2):
        assert alice.post(save_url(assignment), data, **HTMX).status_code == 200
    assert LabelEvent.objects.count() == 1


def test_a_late_save_does_not_undo_a_newer_one(alice, assignment):
    alice.post(save_url(assignment), {"value": "met", "client": "tab-1", "seq": "9"}, **HTMX)
    alice.post(save_url(assignment), {"value": "not_met", "client": "tab-1", "seq": "8"}, **HTMX)
    assert Label.objects.get().value == "met"


def test_a_save_without_javascript_returns_to_the_criterion(alice, assignment):
    response = alice.post(save_url(assignment), {"value": "not_met", "comment": "Seen."})
    asked = assignment.round_item.asked.first()
    assert response["Location"].endswith(f"#criterion-{asked.criterion_id}")
    label = Label.objects.get()
    assert (label.value, label.comment) == ("not_met", "Seen.")


def test_two_saves_without_javascript_follow_each_other(alice, assignment):
    alice.post(save_url(assignment), {"value": "not_met"})
    alice.post(save_url(assignment), {"value": "met"})
    assert Label.objects.get().value == "met"
    assert LabelEvent.objects.count() == 2


def test_a_saved_answer_is_shown_again(alice, assignment):
    alice.post(save_url(assignment), {"value": "cannot_tell", "reason": "reply_ambiguous"})
    text = alice.get(reverse("assignment-detail", args=[assignment.pk])).content.decode()
    assert len(re.findall(r'value="cannot_tell" checked', text)) == 1
    assert re.search(r'value="reply_ambiguous" selected', text)
    assert text.count('data-state="saved"') == 1


def test_a_reason_is_dropped_where_the_answer_is_not_cannot_tell(alice, assignment):
    alice.post(save_url(assignment), {"value": "met", "reason": "reply_ambiguous"})
    assert Label.objects.get().reason == ""


def test_cannot_tell_without_a_reason_is_kept_but_still_open(alice, assignment):
    response = alice.post(save_url(assignment), {"value": "cannot_tell"}, **HTMX)
    text = response.content.decode()
    assert Label.objects.get().value == "cannot_tell"
    assert "0 of 3" in text
    assert "Reason needed" in text


@pytest.mark.parametrize(
    "data",
    [
        {"value": "maybe"},
        {"value": "cannot_tell", "reason": "because"},
        {"value": "met", "client": "tab-1"},
        {"value": "met", "seq": "1"},
        {"value": "met", "client": "tab 1", "seq": "1"},
        {"value": "met", "client": "tab-1", "seq": "-1"},
        {"value": "met", "client": "tab-1", "seq": "99999999999999999999"},
        {"value": "met", "comment": "x" * 10_001},
        {"value": "met", "comment": "nul \x00 inside"},
    ],
)
def test_a_save_that_cannot_be_is_422_and_writes_nothing(alice, assignment, data):
    response = alice.post(save_url(assignment), data, **HTMX)
    assert response.status_code == 422
    assert 'data-state="failed"' in response.content.decode()
    assert not LabelEvent.objects.exists()
    assert alice.post(save_url(assignment), data).status_code == 422


def test_a_criterion_that_is_not_asked_is_refused(alice, assignment):
    elsewhere = make_conversation().criteria.first()
    url = reverse("label-save", args=[assignment.pk, elsewhere.pk])
    assert alice.post(url, {"value": "met"}, **HTMX).status_code in {404, 422}
    assert not Label.objects.exists()


def test_an_expired_session_is_401_to_a_save(assignment):
    response = Client().post(save_url(assignment), {"value": "met"}, **HTMX)
    assert response.status_code == 401
    assert "<html" not in response.content.decode()


def test_saving_keeps_quotes_that_came_from_elsewhere(alice, cast, assignment):
    criterion = assignment.round_item.asked.first().criterion_id
    quote = {"turn": 0, "start": 0, "text": "Part"}
    services.save_label(
        assignment_id=assignment.pk,
        annotator=cast.annotator,
        criterion_id=criterion,
        client="x",
        seq=1,
        value="met",
        quotes=[quote],
    )
    alice.post(save_url(assignment), {"value": "not_met"})
    assert Label.objects.get().quotes == [quote]


def test_submitting_too_early_lists_what_is_open(alice, assignment):
    alice.post(save_url(assignment, 0), {"value": "met"})
    alice.post(save_url(assignment, 1), {"value": "cannot_tell"})
    response = alice.post(reverse("assignment-submit", args=[assignment.pk]))
    text = response.content.decode()
    assert response.status_code == 422
    asked = [a.criterion_id for a in assignment.round_item.asked.all()]
    linked = [int(n) for n in re.findall(r'href="#criterion-(\d+)"', text)]
    assert linked == asked[1:]
    assignment.refresh_from_db()
    assert assignment.state == "active"


def test_submitting_goes_straight_on(alice, cast):
    both = make_round(cast.replies, [cast.annotator], overlap=1)
    first = services.claim_next(round_id=both.pk, annotator=cast.annotator)
    answer_all(alice, first)
    response = alice.post(reverse("assignment-submit", args=[first.pk]))
    first.refresh_from_db()
    assert first.state == "submitted"
    second = Assignment.objects.get(annotator=cast.annotator, state="active")
    assert response["Location"] == reverse("assignment-detail", args=[second.pk])


def test_submitted_answers_are_read_only_until_reopened(alice, assignment):
    answer_all(alice, assignment)
    alice.post(reverse("assignment-submit", args=[assignment.pk]))
    url = reverse("assignment-detail", args=[assignment.pk])
    text = alice.get(url).content.decode()
    assert 'type="radio"' not in text
    assert "You submitted these answers" in text
    assert alice.post(save_url(assignment), {"value": "not_met"}, **HTMX).status_code == 422
    assert set(Label.objects.values_list("value", flat=True)) == {"met"}
    assert alice.post(reverse("assignment-reopen", args=[assignment.pk]))["Location"] == url
    assert alice.get(url).content.decode().count('type="radio"') == 9


def test_skipping_frees_the_reply_and_goes_on(alice, cast, assignment):
    alice.post(reverse("assignment-skip", args=[assignment.pk]))
    assert AssignmentEvent.objects.filter(assignment=assignment, kind="skipped").exists()


def test_declining_needs_no_reason(alice, assignment):
    response = alice.post(reverse("assignment-decline", args=[assignment.pk]), {"reason": ""})
    assignment.refresh_from_db()
    assert (response.status_code, assignment.state) == (302, "declined")


def test_declining_with_a_reason_too_long_is_422(alice, assignment):
    response = alice.post(
        reverse("assignment-decline", args=[assignment.pk]), {"reason": "x" * 501}
    )
    assert response.status_code == 422
    assert "x" * 501 in response.content.decode()


def test_a_paused_round_hands_out_nothing_but_takes_what_was_begun(alice, cast, assignment):
    services.pause_round(round_id=cast.round.pk, actor=cast.researcher)
    text = alice.get(reverse("assignment-detail", args=[assignment.pk])).content.decode()
    assert "This round is paused" in text
    assert alice.post(save_url(assignment), {"value": "met"}, **HTMX).status_code == 200
    home = alice.get(reverse("labelling-home")).content.decode()
    assert "paused this round" in home
    response = alice.post(reverse("labelling-next", args=[cast.round.pk]), follow=True)
    assert "Nothing left for you here" in response.content.decode()


def test_a_closed_round_shows_answers_to_read(alice, cast, assignment):
    services.close_round(round_id=cast.round.pk, actor=cast.researcher)
    text = alice.get(reverse("assignment-detail", args=[assignment.pk])).content.decode()
    assert "closed and takes no more answers" in text
    assert 'type="radio"' not in text
    assert alice.post(reverse("assignment-submit", args=[assignment.pk])).status_code == 422


def urls_of(cast, assignment):
    """Return every labelling URL with its method."""
    own = [assignment.pk]
    return [
        ("get", reverse("labelling-home")),
        ("get", reverse("labelling-round", args=[cast.round.pk])),
        ("post", reverse("labelling-next", args=[cast.round.pk])),
        ("get", reverse("assignment-detail", args=own)),
        ("post", save_url(assignment)),
        *(
            ("post", reverse(f"assignment-{act}", args=own))
            for act in ("submit", "skip", "decline", "reopen")
        ),
    ]


def test_anonymous_people_are_asked_to_sign_in(cast, assignment):
    for method, url in urls_of(cast, assignment):
        response = getattr(Client(), method)(url)
        assert response.status_code == 302, url
        assert response["Location"].startswith(reverse("account_login"))


def test_the_wrong_role_is_403(cast, assignment):
    client = client_of(cast.researcher)
    for method, url in urls_of(cast, assignment):
        assert getattr(client, method)(url).status_code == 403, url


def test_strangers_get_404(cast, assignment):
    client = client_of(cast.stranger)
    for method, url in urls_of(cast, assignment)[1:]:
        assert getattr(client, method)(url).status_code == 404, url


def test_a_colleague_gets_404_for_my_reply(cast, assignment):
    client = client_of(cast.other_user)
    for method, url in urls_of(cast, assignment)[3:]:
        assert getattr(client, method)(url).status_code == 404, url


def test_the_wrong_method_is_405(alice, cast, assignment):
    other = {"get": "post", "post": "get"}
    for method, url in urls_of(cast, assignment):
        assert getattr(alice, other[method])(url).status_code == 405, url


@pytest.mark.parametrize("small", [2])
def test_queries_of_the_page_do_not_grow_with_criteria(small, django_assert_max_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    counts = []
    for criteria in (small, 10 * small):
        user = make_user(roles=["clinician"])
        annotator = make_annotator(user)
        reply = make_reply(make_conversation(criteria=criteria))
        made = make_round([reply], [annotator], overlap=1)
        taken = services.claim_next(round_id=made.pk, annotator=annotator)
        client = client_of(user)
        url = reverse("assignment-detail", args=[taken.pk])
        client.get(url)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get(url)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_queries_of_the_home_do_not_grow_with_rounds():
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    user = make_user(roles=["clinician"])
    annotator = make_annotator(user)
    collection = make_collection()
    client = client_of(user)
    counts = []
    for rounds in (2, 8):
        for _ in range(rounds):
            make_round([make_reply(make_conversation(collection))], [annotator])
        client.get(reverse("labelling-home"))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse("labelling-home")).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
