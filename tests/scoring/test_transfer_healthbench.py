"""HealthBench files become guest collections and come out as they went in."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus import healthbench as format
from corpus.models import Collection, Conversation, Criterion, Dimension, Reply, Rubric
from scoring.transfer import ImportRefused, export_healthbench, import_source, open_source
from tests import healthbench
from tests.scoring.bundles import database_state

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["published", "of its shape"])
def file(request, tmp_path):
    """Return a file of 104 examples."""
    if request.param == "published":
        path = healthbench.published()
        if path is None:
            pytest.skip("the published HealthBench file is not here: set DISTRESSBENCH_TEST_DATA")
        return path
    return healthbench.write(tmp_path / healthbench.FILE, healthbench.examples())


def counts():
    """Return how much the guest collection holds."""
    found = Collection.objects.get(slug="healthbench-context-seeking")
    return (
        found.conversations.count(),
        Criterion.objects.filter(conversation__collection=found).count(),
        Reply.objects.filter(conversation__collection=found).count(),
    )


def faults_of(tmp_path, content):
    """Import lines, and return what was refused; the database must be as before."""
    path = tmp_path / "given.jsonl"
    path.write_bytes(content)
    before = database_state()
    with pytest.raises(ImportRefused) as refused, open_source(path) as source:
        import_source(source)
    assert database_state() == before
    return refused.value.faults


def test_one_command_imports_a_file_and_again_changes_nothing(file):
    call_command("import_corpus", file, stdout=StringIO())
    published = file == healthbench.published()
    assert counts() == (104, 208, 101 if published else 102)
    before = database_state()
    out = StringIO()
    call_command("import_corpus", file, stdout=out)
    assert "nothing changed" in out.getvalue()
    assert database_state() == before


def test_an_export_is_the_file_again(file, tmp_path):
    call_command("import_corpus", file, stdout=StringIO())
    out = tmp_path / "out.jsonl"
    call_command(
        "export_bundle",
        out,
        format="healthbench",
        collection=["healthbench-context-seeking"],
        stdout=StringIO(),
    )
    assert healthbench.canonical(out) == healthbench.canonical(file)
    other = tmp_path / "other.jsonl"
    export_healthbench(other, collection="healthbench-context-seeking")
    assert other.read_bytes() == out.read_bytes()


def test_tags_name_the_dimension_and_points_are_the_weight(tmp_path):
    healthbench.write(tmp_path / "guest.jsonl", [healthbench.example(1)])
    call_command("import_corpus", tmp_path / "guest.jsonl", collection="guest", stdout=StringIO())
    rubric = Rubric.objects.get(conversation__collection__slug="guest")
    assert list(rubric.items.order_by("position").values_list("dimension__slug", "weight")) == [
        ("context_awareness", 5),
        ("communication_quality", 20),
    ]


def test_what_people_renamed_stays_renamed(tmp_path):
    path = healthbench.write(tmp_path / "guest.jsonl", [healthbench.example(1)])
    call_command("import_corpus", path, stdout=StringIO())
    Collection.objects.filter(slug="guest").update(name="Our guests")
    Dimension.objects.filter(collection__slug="guest").update(description="Ours.")
    call_command("import_corpus", path, stdout=StringIO())
    assert Collection.objects.get(slug="guest").name == "Our guests"


def test_a_longer_file_adds_what_is_new(tmp_path):
    rows = [healthbench.example(number) for number in range(1, 4)]
    path = healthbench.write(tmp_path / "guest.jsonl", rows[:2])
    call_command("import_corpus", path, stdout=StringIO())
    healthbench.write(path, rows)
    call_command("import_corpus", path, stdout=StringIO())
    assert Conversation.objects.filter(collection__slug="guest").count() == 3


def test_another_text_under_a_known_id_is_refused_at_its_field(tmp_path):
    first = healthbench.example(1)
    path = healthbench.write(tmp_path / "given.jsonl", [first])
    call_command("import_corpus", path, stdout=StringIO())
    first["prompt"][0]["content"] = "Another."
    first["rubrics"][1]["criterion"] = "Is short."
    first["ideal_completions_data"]["ideal_completion"] = "Yes."
    found = faults_of(tmp_path, json.dumps(first).encode())
    assert [(f.file, f.line, f.field) for f in found] == [
        ("given.jsonl", 1, "prompt"),
        ("given.jsonl", 1, "rubrics[1].criterion"),
        ("given.jsonl", 1, "ideal_completions_data.ideal_completion"),
    ]


def _broken(change):
    row = healthbench.example(7)
    change(row)
    return json.dumps(row).encode()


def _set(*path_and_value):
    *path, last, value = path_and_value

    def change(row):
        for part in path:
            row = row[part]
        row[last] = value

    return change


def _drop(*path):
    def change(row):
        for part in path[:-1]:
            row = row[part]
        del row[path[-1]]

    return change


# One line that is wrong, the field that is named, words of the reason.
BROKEN = {
    "points over 20": (_broken(_set("rubrics", 0, "points", 21)), "rubrics[0].points", "most 20"),
    "points 0": (_broken(_set("rubrics", 0, "points", 0)), "rubrics[0].points", "at least 1"),
    "negative points": (_broken(_set("rubrics", 1, "points", -5)), "rubrics[1].points", "least 1"),
    "points with a half": (
        _broken(_set("rubrics", 0, "points", 2.5)),
        "rubrics[0].points",
        "whole",
    ),
    "points as text": (_broken(_set("rubrics", 0, "points", "5")), "rubrics[0].points", "whole"),
    "points as truth": (_broken(_set("rubrics", 0, "points", True)), "rubrics[0].points", "whole"),
    "no points": (_broken(_drop("rubrics", 0, "points")), "rubrics[0].points", "missing"),
    "no criterion": (_broken(_drop("rubrics", 0, "criterion")), "rubrics[0].criterion", "missing"),
    "blank criterion": (
        _broken(_set("rubrics", 0, "criterion", " ")),
        "rubrics[0].criterion",
        "em",
    ),
    "no tags": (_broken(_drop("rubrics", 0, "tags")), "rubrics[0].tags", "missing"),
    "tags as text": (_broken(_set("rubrics", 0, "tags", "x")), "rubrics[0].tags", "list"),
    "a tag as number": (_broken(_set("rubrics", 0, "tags", [1])), "rubrics[0].tags[0]", "text"),
    "no rubrics": (_broken(_drop("rubrics")), "rubrics", "missing"),
    "empty rubrics": (_broken(_set("rubrics", [])), "rubrics", "at least 1"),
    "rubrics as text": (_broken(_set("rubrics", "x")), "rubrics", "list"),
    "a rubric as text": (_broken(_set("rubrics", ["x"])), "rubrics[0]", "object"),
    "no prompt": (_broken(_drop("prompt")), "prompt", "missing"),
    "empty prompt": (_broken(_set("prompt", [])), "prompt", "at least 1"),
    "prompt as text": (_broken(_set("prompt", "Hello")), "prompt", "list"),
    "a turn without a role": (_broken(_drop("prompt", 0, "role")), "prompt[0].role", "missing"),
    "a system turn": (_broken(_set("prompt", 0, "role", "system")), "prompt[0].role", "one of"),
    "an empty turn": (_broken(_set("prompt", 0, "content", "")), "prompt[0].content", "empty"),
    "a turn of nothing": (_broken(_set("prompt", 0, "content", None)), "prompt[0].content", "text"),
    "an answer at the end": (_broken(_set("prompt", 0, "role", "assistant")), "", "user's"),
    "no prompt_id": (_broken(_drop("prompt_id")), "prompt_id", "missing"),
    "prompt_id as number": (_broken(_set("prompt_id", 7)), "prompt_id", "text"),
    "prompt_id as path": (_broken(_set("prompt_id", "../7")), "prompt_id", "letters"),
    "prompt_id too long": (_broken(_set("prompt_id", "7" * 200)), "prompt_id", "longer than"),
    "no ideal": (_broken(_drop("ideal_completions_data")), "ideal_completions_data", "missing"),
    "ideal as text": (
        _broken(_set("ideal_completions_data", "x")),
        "ideal_completions_data",
        "object",
    ),
    "an empty ideal": (
        _broken(_set("ideal_completions_data", "ideal_completion", "")),
        "ideal_completions_data.ideal_completion",
        "empty",
    ),
    "canary as number": (_broken(_set("canary", 1)), "canary", "text"),
    "a NUL": (_broken(_set("prompt", 0, "content", "a\0b")), "prompt[0].content", "NUL"),
    "half a pair": (
        _broken(_set("prompt", 0, "content", "a\ud800")),
        "prompt[0].content",
        "surrog",
    ),
    "half a pair deep inside": (
        _broken(_set("ideal_completions_data", "ideal_completions_ref_completions", ["\udc00"])),
        "ideal_completions_data.ideal_completions_ref_completions[0]",
        "surrogate",
    ),
    "not JSON": (b"{prompt: 1}", "", "not JSON"),
    "cut": (_broken(lambda row: None)[:200], "", "not JSON"),
    "not UTF-8": (b'{"prompt":"\xff"}', "", "not valid UTF-8"),
    "a list": (b"[1, 2]", "", "object"),
    "an empty line": (b"", "", "empty"),
    "a key twice": (b'{"prompt_id":"a","prompt_id":"b"}', "prompt_id", "twice"),
    "NaN": (b'{"prompt_id":NaN}', "", "NaN"),
    "too deep": (b'{"x":' + b"[" * 60 + b"]" * 60 + b"}", "", "deeper"),
    "CR LF": (_broken(lambda row: None) + b"\r", "", "CR LF"),
}


@pytest.mark.parametrize(("line", "field", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_named_and_refuses_the_whole_file(tmp_path, line, field, reason):
    good = json.dumps(healthbench.example(1)).encode()
    found = faults_of(tmp_path, good + b"\n" + line + b"\n")
    assert [(f.line, f.field) for f in found] == [(2, field)]
    assert reason in found[0].reason


def test_all_broken_lines_are_named_at_once(tmp_path):
    lines = [line for line, _, _ in BROKEN.values()]
    assert len(lines) >= 25
    found = faults_of(tmp_path, b"\n".join(lines) + b"\n")
    assert {f.line for f in found} == set(range(1, len(lines) + 1))
    assert {f.file for f in found} == {"given.jsonl"}


def test_an_id_that_stands_twice_is_named_with_the_first(tmp_path):
    row = json.dumps(healthbench.example(1)).encode()
    found = faults_of(tmp_path, row + b"\n" + row + b"\n")
    assert [(f.line, f.field, f.reason) for f in found] == [
        (2, "prompt_id", "line 1 has this prompt_id already")
    ]


def test_two_places_cannot_be_answered_by_one_completion(tmp_path):
    row = healthbench.example(1)
    row["prompt"] *= 2
    found = faults_of(tmp_path, json.dumps(row).encode())
    assert "two turns of the user in a row" in found[0].reason


@pytest.mark.parametrize("slug", ["with space", "x" * 65, "ümlaut"])
def test_a_collection_with_an_impossible_name_is_refused(tmp_path, slug):
    path = healthbench.write(tmp_path / "given.jsonl", [healthbench.example(1)])
    with pytest.raises(CommandError, match="no name for a collection"):
        call_command("import_corpus", path, collection=slug, stdout=StringIO())


@pytest.mark.no_database
@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("healthbench_context_seeking_104.jsonl", "healthbench-context-seeking"),
        ("HealthBench Hard (2025).JSONL", "healthbench-hard"),
        ("2025-05-07.jsonl", "2025"),
        ("Übung.jsonl", "bung"),
        ("….jsonl", "healthbench"),
    ],
)
def test_a_collection_is_named_after_its_file(name, slug):
    assert format.collection_slug(name) == slug


_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_spoken = _texts.filter(lambda text: bool(text.strip()))
_more = st.dictionaries(
    _texts.filter(lambda key: key not in {"role", "content", "criterion", "points", "tags"}),
    st.none() | st.booleans() | st.integers() | _texts | st.lists(_texts, max_size=2),
    max_size=2,
)


@st.composite
def _examples(draw):
    prompt = [
        draw(_more) | {"role": "user" if n % 2 == 0 else "assistant", "content": draw(_spoken)}
        for n in range(draw(st.sampled_from([1, 3, 5])))
    ]
    rubrics = [
        draw(_more)
        | {
            "criterion": draw(_spoken),
            "points": draw(st.integers(1, 20)),
            "tags": draw(st.lists(_texts | st.just("axis:Ähnlich & more"), max_size=2)),
        }
        for _ in range(draw(st.integers(1, 3)))
    ]
    ideal = draw(st.none() | _spoken)
    return draw(_more) | {
        "prompt": prompt,
        "prompt_id": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,9}", fullmatch=True)),
        "rubrics": rubrics,
        "ideal_completions_data": None if ideal is None else {"ideal_completion": ideal, "x": [1]},
    }


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(raw=_examples())
@pytest.mark.no_database
def test_any_example_becomes_rows_and_the_same_example_again(raw):
    assert not list(format.problems(raw))
    rows = format.example_rows(raw, "guest")
    reference = rows["replies"][0] if rows["replies"] else None
    criteria = {row["key"]: row for row in rows["criteria"]}
    again = format.example(
        rows["conversations"][0], criteria, rows["rubrics"][0]["items"], reference
    )
    assert again == raw
