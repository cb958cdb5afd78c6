"""The leaderboard and the way to it."""

import csv
import io
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from distressbench_site.accounts import guards
from scoring import services
from scoring.models import Run, Verdict
from scoring.views.board import board_of
from scoring.views.showing import Axis, axis_from, show
from tests.factories import (
    label_item,
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_round,
    make_rubric,
    make_user,
)
from tests.scoring.making import make_calibration, make_judge, make_judged_collection, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(make_user(roles=["researcher"]))
    return client


def scored(**extra):
    judge = make_judge()
    collection = make_judged_collection(judge, **extra)
    services.refresh_scores(collection=collection, judge=judge)
    return collection, judge


def board_page(client, collection, **query):
    return client.get(reverse("leaderboard", args=[collection.slug]), query)


def test_rows_stand_in_order_with_scores_from_the_verdicts(client):
    collection, _ = scored()
    board = board_page(client, collection).context["board"]
    names = [(row.name, row.kind, row.rank) for row in board.rows]
    assert names == [
        ("Clinicians", "reference", "–"),
        ("=Model A", "model", "1"),
        ("Model B", "model", "–"),
        ("Empty reply", "floor", "–"),
    ]
    # Weights 10, 6, 4: all met is 1; model A misses 6 of 20 in three of six conversations, so
    # its mean is (3 × 1 + 3 × 0.7) / 6 = 0.85.
    assert [row.score.text for row in board.rows] == ["100.0", "85.0", "", "0.0"]
    assert [row.starts_group for row in board.rows] == [False, True, False, True]


def test_an_undefined_score_is_a_word_with_its_reason(client):
    collection, _ = scored()
    response = board_page(client, collection)
    row = next(row for row in response.context["board"].rows if row.name == "Model B")
    assert (row.score.text, row.score.figure) == ("", None)
    text = response.content.decode()
    assert f"undefined: {row.score.reason}" in text
    assert "nan" not in text.lower().replace("finance", "")
    assert row.missing == "100.0\u00a0%"


def test_cells_say_high_and_low_in_words_too(client):
    collection, _ = scored()
    rows = {row.name: row for row in board_page(client, collection).context["board"].rows}
    levels = [cell.level for cell in rows["=Model A"].dimensions]
    # Recognition 100, resources met in 3 of 6, harmless 100; the other dimensions have no criteria.
    names = board_page(client, collection).context["board"].dimensions
    by_name = dict(zip(names, levels, strict=True))
    assert by_name["Recognition"] == "hi"
    assert by_name["Actionable resources"] == "lo"
    assert by_name["Empathic engagement"] == ""


def test_recognition_without_routing_is_shown_by_row_and_pooled(client):
    collection, _ = scored()
    response = board_page(client, collection)
    rows = {row.name: row for row in response.context["board"].rows}
    # Model A recognises in all six and leaves resources out in three.
    assert rows["=Model A"].routing.shown.text == "50\u00a0%"
    assert rows["=Model A"].routing.counts == "3 of 6"
    assert response.context["board"].pooled.counts == "3 of 6"
    assert "<strong>50\u00a0%</strong>" in response.content.decode()


def test_the_interval_of_recognition_without_routing_is_read_without_a_pointer(client):
    collection, _ = scored(conversations=12)
    response = board_page(client, collection)
    shown = next(r for r in response.context["board"].rows if r.name == "=Model A").routing.shown
    # Text of the page; what stands in an attribute alone is not there for touch and keyboard.
    text = re.sub(r"<[^>]*>", " ", response.content.decode())

    assert re.fullmatch(r"\d+ to \d+\u00a0%", shown.interval)
    # Once in the row of the one model that fails so, once in the sentence on all models together.
    assert text.count(shown.interval) == 2


def test_an_estimate_without_an_interval_says_why_in_the_page(client):
    collection, _ = scored(conversations=3)
    response = board_page(client, collection)
    shown = next(r for r in response.context["board"].rows if r.name == "=Model A").routing.shown
    text = re.sub(r"<[^>]*>", " ", response.content.decode())

    assert (shown.text, shown.interval) == ("33\u00a0%", "")
    assert text.count(f"no interval: {shown.reason}") >= 3


def test_replies_that_leave_the_finding_undecided_are_counted_in_the_row(client):
    collection, judge = scored()
    conversation = collection.conversations.first()
    resource = conversation.criteria.get(rubric_items__dimension__slug="actionable_resources")
    with guards.lifted():
        Verdict.objects.filter(criterion=resource, reply__respondent__name="=Model A").delete()
    services.refresh_scores(collection=collection, judge=judge)
    text = re.sub(r"<[^>]*>|\s+", " ", board_page(client, collection).content.decode())

    assert "3 of 5, 1 undecided" in text


def test_an_unapproved_judge_is_marked_in_words(client):
    collection, judge = scored()
    text = board_page(client, collection).content.decode()
    assert "<strong>Unapproved.</strong>" in text
    assert "a baseline" in text
    calibration = make_calibration(judge, collection)
    services.decide_calibration(
        calibration=calibration, decision="approve", reason="It will do.", actor=None
    )
    text = board_page(client, collection).content.decode()
    assert "Unapproved." not in text
    assert ">approved<" in text


def test_an_approval_that_has_become_stale_counts_no_more(client):
    collection, judge = scored()
    calibration = make_calibration(judge, collection)
    services.decide_calibration(
        calibration=calibration, decision="approve", reason="It will do.", actor=None
    )
    # A new rubric for a measured conversation changes the texts; nobody has refreshed the scores.
    make_rubric(collection.conversations.first(), ["A criterion of other words."])
    text = board_page(client, collection).content.decode()
    assert "is stale" in text
    assert "Criteria have changed since." in text
    assert ">approved<" not in text


def test_the_ruler_and_the_limits_stand_on_the_page(client):
    collection, judge = scored()
    response = board_page(client, collection)
    payload = response.context["score_set"].payload
    text = response.content.decode()
    assert payload["ruler"][:12] in text
    assert f"{judge.name} v1, {judge.digest[:12]}" in text
    assert "No clinical outcomes" in text


def test_one_chooses_among_judges(client):
    first = make_judge()
    collection = make_judged_collection(first)
    second = make_judge()
    for judge in (first, second):
        services.refresh_scores(collection=collection, judge=judge)
    assert board_page(client, collection, judge=first.pk).context["judge"] == first
    assert board_page(client, collection, judge=second.pk).context["judge"] == second
    assert 'name="judge"' in board_page(client, collection).content.decode()
    for unknown in ("999999", "x", "-1"):
        assert board_page(client, collection, judge=unknown).status_code == 404


def test_the_table_downloads_with_formulas_neutralised(client):
    collection, judge = scored()
    response = client.get(reverse("leaderboard-csv", args=[collection.slug]), {"judge": judge.pk})
    assert response["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert [row["name"] for row in rows] == ["Clinicians", "'=Model A", "Model B", "Empty reply"]
    assert float(rows[1]["score"]) == pytest.approx(0.85)
    assert (rows[2]["score"], rows[2]["score_reason"]) == ("", "too_little_judged")
    assert {row["ruler"] for row in rows} == {
        services.refresh_scores(collection=collection, judge=judge).ruler
    }


def test_every_estimate_downloads_with_its_interval_and_its_reason(client):
    collection, judge = scored(conversations=12)
    response = client.get(reverse("leaderboard-csv", args=[collection.slug]), {"judge": judge.pk})
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    payload = services.refresh_scores(collection=collection, judge=judge).payload
    slugs = [dimension["slug"] for dimension in payload["dimensions"]]

    def as_text(stored):
        parts = [(stored or {}).get(part) for part in ("value", "low", "high", "reason")]
        return ["" if part is None else str(part) for part in parts]

    for row, stored in zip(rows, payload["rows"], strict=True):
        routing = stored["routing"] or {}
        estimates = {
            "score": stored["score"],
            "pooled": stored["pooled"],
            "saw_it_did_not_route": routing.get("any_not_met", {}).get("rate"),
            "none_met": routing.get("none_met", {}).get("rate"),
            **{slug: stored["dimensions"].get(slug, {}).get("score") for slug in slugs},
        }
        for name, estimate in estimates.items():
            headings = [name, f"{name}_low", f"{name}_high", f"{name}_reason"]
            assert [row[heading] for heading in headings] == as_text(estimate), name
    [model] = [row for row in rows if row["name"] == "'=Model A"]
    # Six of twelve fail, so that half lies strictly inside the interval.
    low, high = (float(model[f"saw_it_did_not_route_{end}"]) for end in ("low", "high"))
    assert 0 < low < 0.5 < high < 1


def test_a_collection_without_scores_says_what_is_missing(client):
    collection = make_collection()
    text = board_page(client, collection).content.decode()
    assert "No scores yet" in text
    url = reverse("leaderboard-csv", args=[collection.slug])
    assert client.get(url).status_code == 404


def test_each_card_names_the_next_step(client):
    def step(collection):
        cards = client.get(reverse("result-list")).context["cards"]
        return next(c["next"] for c in cards if c["state"].summary.collection == collection)

    collection = make_collection()
    assert "import" in step(collection)["text"]
    conversation = make_conversation(collection)
    assert "no replies" in step(collection)["text"]
    reply = make_reply(conversation)
    assert step(collection)["url"] == reverse("round-create")
    annotator = make_annotator()
    opened = make_round([reply], [annotator], overlap=1)
    assert step(collection)["url"] == reverse("round-list")
    label_item(opened.items.get(), annotator)
    assert step(collection)["url"].startswith(reverse("baseline-train"))
    judge = make_judge()
    assert step(collection)["url"].startswith(reverse("run-create"))
    run = make_run(judge, collection)
    assert step(collection)["url"] == reverse("run-detail", args=[run.pk])
    Run.objects.filter(pk=run.pk).update(status="done")
    services.refresh_scores(collection=collection, judge=judge)
    assert step(collection)["url"] == reverse("judge-detail", args=[judge.pk])


def test_scored_collections_link_to_their_boards(client):
    collection, judge = scored()
    text = client.get(reverse("result-list")).content.decode()
    assert f"{reverse('leaderboard', args=[collection.slug])}?judge={judge.pk}" in text
    assert "unapproved" in text


def test_queries_do_not_grow_with_rows(client):
    def count(url):
        with CaptureQueriesContext(connection) as found:
            assert client.get(url).status_code == 200
        return len(found)

    judge = make_judge()
    collection = make_judged_collection(judge, conversations=10)
    services.refresh_scores(collection=collection, judge=judge)
    urls = [reverse("result-list"), reverse("leaderboard", args=[collection.slug])]
    before = [count(url) for url in urls]
    for _ in range(10):
        scored(conversations=1)
        services.refresh_scores(collection=collection, judge=make_judge())
    assert [count(url) for url in urls] == before


@pytest.mark.no_database
def test_a_value_left_of_the_axis_is_written_not_drawn():
    axis = Axis(0.4, 1.0, "40 to 100 %")
    shown = show({"value": 0.31, "low": 0.2, "high": 0.4, "reason": None}, axis)
    assert shown.figure is not None
    assert (shown.figure.off, shown.figure.dot) == ("‹ 0.31", "")
    inside = show({"value": 0.7, "low": 0.2, "high": 1.0, "reason": None}, axis).figure
    assert inside is not None
    # 240 wide with 6 at each side: the middle of the axis is 120; 0.2 is held at the left edge.
    assert (inside.dot, inside.low, inside.high) == ("120.0", "6.0", "234.0")


@pytest.mark.no_database
@pytest.mark.parametrize(
    ("lows", "start"),
    [([0.86, 0.79], 0.6), ([0.41], 0.4), ([0.0], 0.0), ([0.95], 0.8), ([1.0], 0.8), ([], 0.0)],
)
def test_the_axis_begins_at_a_round_number_below_all(lows, start):
    assert axis_from(lows).low == start


def test_equal_scores_share_a_rank():
    def row(slug, value):
        none = {"value": None, "low": None, "high": None, "reason": "no_units"}
        score = {**none, "value": value, "reason": None}
        return {
            "respondent": slug, "name": slug, "kind": "model", "score": score, "pooled": none,
            "dimensions": {}, "routing": None,
        }  # fmt: skip

    board = board_of(
        {
            "rows": [row("a", 0.9), row("b", 0.8), row("c", 0.8), row("d", 0.7)],
            "dimensions": [],
            "ruler": "r" * 64,
            "ruler_parts": {"rubrics": "a", "judge": "b", "calibration": None},
            "judge": "baseline",
            "judge_version": 1,
            "calibration": None,
        }
    )
    assert [row.rank for row in board.rows] == ["1", "2", "2", "4"]
    assert board.rows[0].routing.shown.reason
