"""The commands say what they did, and a person's mistake without a traceback."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from scoring.models import Calibration, Judge, Run
from scoring.services import start_run, train_baseline
from tests import factories

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_the_road_by_command(labelled):
    slug, name = labelled.collection.slug, labelled.round.name
    trained = said("train_baseline", "--collection", slug, "--round", name)
    assert trained.startswith("baseline@1: trained on ")
    judged = said("judge", "--judge", "baseline", "--collection", slug)
    assert "12 of 12 replies judged, 0 failed" in judged
    board = said("leaderboard", "--collection", slug)
    assert "UNAPPROVED" in board
    calibrated = said(
        "calibrate", "--judge", "baseline@1", "--round", name, "--approve", "it is a test"
    )
    assert "Calibration 1 is approved." in calibrated
    for dimension in Calibration.objects.get().metrics["dimensions"]:
        assert dimension in calibrated
    board = said("leaderboard")
    assert "Calibration 1, approved." in board
    assert "UNAPPROVED" not in board
    for wanted in (labelled.good.name, labelled.bad.name, "Ruler ", "No clinical outcomes"):
        assert wanted in board


def test_the_leaderboard_as_json_is_the_stored_payload(labelled):
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    said("judge", "--judge", "baseline", "--collection", labelled.collection.slug)
    boards = json.loads(said("leaderboard", "--json"))
    assert [board["judge_version"] for board in boards] == [judge.version]
    assert boards[0]["rows"][0]["score"]["value"] is not None
    assert boards == json.loads(said("leaderboard", "--json", "--judge", "baseline@1"))


def test_nothing_judged_is_an_empty_list_or_a_fault_in_words(labelled):
    assert json.loads(said("leaderboard", "--json")) == []
    with pytest.raises(CommandError, match="judge a collection first"):
        said("leaderboard")


def test_a_command_joins_the_run_that_has_not_ended(labelled):
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    run = start_run(judge=judge, collection=labelled.collection, actor=None)
    out = said("judge", "--judge", "baseline", "--collection", labelled.collection.slug)
    assert f"Joining run {run.pk}" in out
    assert Run.objects.get().status == Run.Status.DONE


def test_a_paused_run_is_left_as_it_is(labelled):
    judge = train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    run = start_run(judge=judge, collection=labelled.collection, actor=None)
    Run.objects.filter(pk=run.pk).update(status="paused")
    with pytest.raises(CommandError, match="is paused"):
        said("judge", "--judge", "baseline", "--collection", labelled.collection.slug)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("train_baseline", "--collection", "nowhere", "--round", "x"), "no collection “nowhere”"),
        (("train_baseline", "--collection", "{slug}", "--round", "x"), "no round “x”"),
        (("judge", "--judge", "nobody", "--collection", "{slug}"), "no judge “nobody”"),
        (("judge", "--judge", "nobody@x", "--collection", "{slug}"), "no version"),
        (("calibrate", "--judge", "nobody@2", "--round", "{round}"), "no judge “nobody@2”"),
        (("leaderboard", "--collection", "nowhere"), "no collection “nowhere”"),
    ],
)
def test_a_name_that_is_not_there_is_said_with_those_that_are(labelled, arguments, wanted):
    names = {"slug": labelled.collection.slug, "round": labelled.round.name}
    with pytest.raises(CommandError, match=wanted):
        said(*(argument.format(**names) for argument in arguments))


def test_calibrating_before_judging_and_approving_without_a_reason_are_faults(labelled):
    train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    arguments = ("calibrate", "--judge", "baseline", "--round", labelled.round.name)
    with pytest.raises(CommandError, match="Run it on the collection first"):
        said(*arguments)
    said("judge", "--judge", "baseline", "--collection", labelled.collection.slug)
    with pytest.raises(CommandError, match="needs a reason"):
        said(*arguments, "--approve", "")


def test_names_that_look_like_markup_are_printed_as_they_are(labelled):
    odd = factories.make_respondent(name="model [bold]x[/bold] [/] é🕯")
    factories.make_reply(labelled.replies[0].conversation, odd)
    train_baseline(collection=labelled.collection, rounds=[labelled.round], actor=None)
    said("judge", "--judge", "baseline", "--collection", labelled.collection.slug)
    assert Judge.objects.count() == 1
    assert "[bold]x[/bold]" in said("leaderboard")
