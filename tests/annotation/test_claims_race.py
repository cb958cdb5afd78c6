"""Real processes claim at the same moment; the database decides, and nobody sees an error."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from annotation import services
from annotation.models import Assignment, Label, LabelEvent, RoundItem, Slot
from annotation.selectors import verify_assignments
from tests.factories import (
    make_annotator,
    make_collection,
    make_conversation,
    make_reply,
    make_round,
)
from tests.program import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

# Django is loaded once; then each job becomes a process of its own, before any of them has a
# connection. They start together at the touch of a file, and each leaves a file with what it got.
PROGRAM = """
import json, os, pathlib, sys, time, traceback
import django
from django.conf import settings

database, folder, jobs = json.loads(sys.argv[1])
folder = pathlib.Path(folder)
settings.DATABASES["default"].update(database)
django.setup()
from annotation import services
from annotation.models import Annotator


def claim(round_id, annotator):
    taken = services.claim_next(round_id=round_id, annotator=annotator)
    return taken and taken.pk


def claim_all(round_id, annotator):
    taken = []
    while (work := services.claim_next(round_id=round_id, annotator=annotator)) is not None:
        taken.append(work.pk)
        for asked in work.round_item.asked.all():
            services.save_label(assignment_id=work.pk, annotator=annotator,
                                criterion_id=asked.criterion_id, client="p", seq=1, value="met")
        services.submit_assignment(assignment_id=work.pk, annotator=annotator)
    return taken


def claim_and_skip(round_id, annotator, times):
    for _ in range(times):
        taken = services.claim_next(round_id=round_id, annotator=annotator)
        if taken is not None:
            services.skip_assignment(assignment_id=taken.pk, annotator=annotator)


def change_overlap(round_id, annotator, overlaps):
    for overlap in overlaps:
        services.set_overlap(round_id=round_id, overlap=overlap, actor=None)


def save(round_id, annotator, assignment, criterion, client, times):
    for seq in range(1, times + 1):
        services.save_label(assignment_id=assignment, annotator=annotator,
                            criterion_id=criterion, client=client, seq=seq,
                            value="met" if seq % 2 else "not_met")


def work(number, act, arguments):
    annotator = Annotator.objects.get(pk=arguments.pop("annotator"))
    (folder / f"ready-{number}").touch()
    while not (folder / "start").exists():
        time.sleep(0.001)
    said = globals()[act](arguments.pop("round"), annotator, **arguments)
    (folder / f"said-{number}").write_text(json.dumps(said))


children = []
for number, (act, arguments) in enumerate(jobs):
    child = os.fork()
    if child == 0:
        try:
            work(number, act, arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def race(folder, jobs, timeout=120):
    """Run (act, arguments) each in a process of its own, all let go at once; return what each said.

    A process that fails makes the test fail, with what it wrote.
    """
    wanted = connection.settings_dict
    database = {key: str(wanted[key]) for key in ("NAME", "HOST", "PORT", "USER", "PASSWORD")}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps([database, str(folder), jobs])],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "distressbench_site.settings"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + timeout
        while len(list(folder.glob("ready-*"))) < len(jobs):
            assert program.poll() is None, program.communicate()[1]
            assert time.monotonic() < deadline, "the processes did not start in time"
            time.sleep(0.02)
        (folder / "start").touch()
        errors = program.communicate(timeout=timeout)[1]
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
    assert program.returncode == 0, errors
    return [json.loads((folder / f"said-{n}").read_text()) for n in range(len(jobs))]


def make_crowd(people, items, overlap):
    collection = make_collection()
    replies = [make_reply(make_conversation(collection, criteria=1)) for _ in range(items)]
    annotators = [make_annotator() for _ in range(people)]
    return make_round(replies, annotators, overlap=overlap), annotators


def claiming(act, round_, annotators, **more):
    return [(act, {"round": round_.pk, "annotator": a.pk, **more}) for a in annotators]


def test_of_twenty_who_claim_the_last_free_place_exactly_one_gets_it(tmp_path):
    round_, annotators = make_crowd(people=21, items=1, overlap=2)
    first = services.claim_next(round_id=round_.pk, annotator=annotators[0])
    got = race(tmp_path, claiming("claim", round_, annotators[1:]))
    taken = [pk for pk in got if pk is not None]
    assert len(taken) == 1
    assert set(Assignment.objects.values_list("pk", flat=True)) == {first.pk, *taken}


def test_of_twenty_who_find_a_lease_that_ran_out_exactly_one_gets_the_place(tmp_path):
    round_, annotators = make_crowd(people=21, items=1, overlap=1)
    first = services.claim_next(round_id=round_.pk, annotator=annotators[0])
    past = timezone.now() - timedelta(seconds=1)
    Assignment.objects.update(lease_until=past)
    got = race(tmp_path, claiming("claim", round_, annotators[1:]))
    assert len([pk for pk in got if pk is not None]) == 1
    first.refresh_from_db()
    assert first.state == "lapsed"
    assert list(first.events.values_list("kind", flat=True)) == ["claimed", "lapsed"]


def test_one_person_in_eight_tabs_gets_one_reply(tmp_path):
    round_, [ada] = make_crowd(people=1, items=8, overlap=2)
    got = race(tmp_path, claiming("claim", round_, [ada] * 8))
    assert set(got) == {Assignment.objects.get().pk}


def test_eight_people_label_every_reply_exactly_as_often_as_the_overlap_says(tmp_path):
    round_, annotators = make_crowd(people=8, items=6, overlap=2)
    got = race(tmp_path, claiming("claim_all", round_, annotators))
    taken = [pk for mine in got for pk in mine]
    assert len(taken) == len(set(taken)) == 12
    work = Assignment.objects.all()
    assert {row.state for row in work} == {"submitted"}
    counts = Counter(row.round_item_id for row in work)
    assert counts == {item.pk: 2 for item in round_.items.all()}
    assert Label.objects.count() == LabelEvent.objects.count() == 12
    assert list(verify_assignments(work)) == []


def test_places_stay_as_many_as_the_overlap_while_it_changes_under_way(tmp_path):
    round_, annotators = make_crowd(people=6, items=3, overlap=3)
    jobs = claiming("claim_and_skip", round_, annotators, times=8)
    jobs += claiming("change_overlap", round_, annotators[:1], overlaps=[1, 3, 2, 1, 3, 1] * 2)
    race(tmp_path, jobs)
    for item in RoundItem.objects.all():
        held = Assignment.objects.filter(round_item=item, slot__isnull=False).count()
        assert Slot.objects.filter(round_item=item).count() == max(1, held)


def test_two_tabs_that_save_at_once_lose_nothing(tmp_path):
    round_, [ada] = make_crowd(people=1, items=1, overlap=1)
    work = services.claim_next(round_id=round_.pk, annotator=ada)
    criterion = work.round_item.asked.get().criterion_id
    jobs = [
        job
        for client in ("a", "b", "c")
        for job in claiming(
            "save",
            round_,
            [ada],
            assignment=work.pk,
            criterion=criterion,
            client=client,
            times=15,
        )
    ]
    # The same tab twice, as when a save is sent again while the first is still on its way.
    race(tmp_path, [*jobs, *jobs])
    assert LabelEvent.objects.count() == 45
    assert Label.objects.count() == 1
    assert list(verify_assignments(Assignment.objects.all())) == []
