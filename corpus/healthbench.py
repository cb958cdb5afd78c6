"""HealthBench JSONL to rows of the corpus and back. No Django here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from corpus.schema import places
from corpus.schema.faults import model_problems
from corpus.schema.fields import ConversationKey, Locale, Spoken, refuse

REFERENCE = "healthbench-reference"
# The day HealthBench was published; its files state no dates.
PUBLISHED = "2025-05-12T00:00:00.000000Z"
AXIS = "axis:"
UNSORTED = "unsorted"
LOCALE = "en"


class _Open(BaseModel):
    """An object with fields of its own beside those that are known."""

    model_config = ConfigDict(extra="allow", strict=True)


class PromptTurn(_Open):
    """A fixed turn."""

    role: Literal["user", "assistant"]
    content: Spoken


class RubricCriterion(_Open):
    """A criterion with its points; only care that is wanted can be weighed."""

    criterion: Spoken
    points: Annotated[int, Field(ge=1, le=20)]
    tags: list[str]


class Ideal(_Open):
    """What a physician would answer."""

    ideal_completion: Spoken


class HealthBenchRow(_Open):
    """One example."""

    prompt: Annotated[list[PromptTurn], Field(min_length=1)]
    prompt_id: ConversationKey
    rubrics: Annotated[list[RubricCriterion], Field(min_length=1)]
    ideal_completions_data: Ideal | None
    example_tags: list[str] = []
    canary: Annotated[str, StringConstraints(min_length=1)] | None = None
    locale: Locale | None = None

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if self.prompt[-1].role != "user":
            raise refuse("the last turn of the prompt must be the user's")
        if self.ideal_completions_data and len(places(turns_of(self))) > 1:
            raise refuse("two turns of the user in a row cannot be answered by one completion")
        return self


def problems(raw: Mapping[str, Any]) -> Iterator[tuple[str, object, str]]:
    """Yield field, value and reason of everything that is wrong with an example."""
    try:
        HealthBenchRow.model_validate(raw)
    except ValidationError as error:
        yield from model_problems(error)


def turns_of(row: HealthBenchRow) -> list[dict[str, str]]:
    """Return the prompt as turns of a conversation."""
    return [{"role": turn.role, "text": turn.content} for turn in row.prompt]


def dimension_of(tags: Sequence[str]) -> str:
    """Return the dimension that a criterion's tags name."""
    for tag in tags:
        if tag.startswith(AXIS):
            slug = re.sub(r"[^a-z0-9_-]+", "_", tag[len(AXIS) :].lower()).strip("_")[:64]
            return slug or UNSORTED
    return UNSORTED


def collection_slug(file_name: str) -> str:
    """Return the slug of a guest collection from the name of its file, without its count."""
    stem = re.sub(r"\.(jsonl|json|txt)$", "", file_name, flags=re.IGNORECASE).lower()
    slug = re.sub(r"[^a-z0-9]+", "-", stem).strip("-")
    return re.sub(r"(-\d+)+$", "", slug)[:64].strip("-") or "healthbench"


def shared_rows(collection: str, dimensions: set[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that all examples of a collection stand on."""
    return {
        "collections": [
            {
                "slug": collection,
                "name": _titled(collection),
                "description": "A guest collection, imported from HealthBench.",
                "source": {"format": "healthbench"},
            }
        ],
        "dimensions": [
            {
                "collection": collection,
                "slug": slug,
                "name": slug.replace("_", " ").replace("-", " ").capitalize(),
                "description": "",
                "stance": "act",
                "position": 1,
            }
            for slug in sorted(dimensions)
        ],
        "respondents": [
            {
                "slug": REFERENCE,
                "name": "HealthBench ideal completion",
                "kind": "reference",
                "family": "",
                "config": {},
            }
        ],
    }


def example_rows(raw: dict[str, Any], collection: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of one example that has no problem."""
    row = HealthBenchRow.model_validate(raw)
    key = row.prompt_id
    known = {"prompt", "prompt_id", "rubrics", "ideal_completions_data"}
    source = {name: value for name, value in raw.items() if name not in known}
    extras = [_without(turn, "role", "content") for turn in raw["prompt"]]
    if any(extras):
        source["prompt"] = extras
    width = max(2, len(str(len(row.rubrics))))
    keys = [f"c{number:0{width}}" for number in range(1, len(row.rubrics) + 1)]
    at = {"collection": collection, "conversation": key}
    found: dict[str, list[dict[str, Any]]] = {
        "conversations": [
            {
                "collection": collection,
                "key": key,
                "subcategory": None,
                "locale": row.locale or LOCALE,
                "turns": turns_of(row),
                "status": "active",
                "authors": [],
                "source": source,
                "supersedes": None,
            }
        ],
        "criteria": [
            {
                **at,
                "key": name,
                "text": given["criterion"],
                "same_meaning_as": None,
                "reason": "",
                "source": _without(given, "criterion", "points"),
            }
            for name, given in zip(keys, raw["rubrics"], strict=True)
        ],
        "rubrics": [
            {
                **at,
                "version": 1,
                "status": "published",
                "published_at": PUBLISHED,
                "author": "HealthBench",
                "change_note": "",
                "items": [
                    {
                        "criterion": name,
                        "dimension": dimension_of(given.tags),
                        "weight": given.points,
                        "position": position,
                    }
                    for position, (name, given) in enumerate(
                        zip(keys, row.rubrics, strict=True), start=1
                    )
                ],
            }
        ],
        "replies": [],
    }
    if row.ideal_completions_data is not None:
        found["replies"].append(
            {
                **at,
                "respondent": REFERENCE,
                "sample": 0,
                "turns": [row.ideal_completions_data.ideal_completion],
                "outcome": "answered",
                "finish_reason": "",
                "returned_model": "",
                "authors": [],
                "source": _without(raw["ideal_completions_data"], "ideal_completion"),
                "replied_on": None,
                "created_at": PUBLISHED,
            }
        )
    return found


def example(
    conversation: Mapping[str, Any],
    criteria: Mapping[str, Mapping[str, Any]],
    items: Sequence[Mapping[str, Any]],
    reference: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the example that a conversation's rows stand for; criteria by key."""
    source = dict(conversation["source"])
    extras = source.pop("prompt", None) or [{} for _ in conversation["turns"]]
    ideal = None
    # A completion fills one place; a reply with several texts has no form there.
    if reference is not None and len(reference["turns"]) == 1:
        ideal = {**reference["source"], "ideal_completion": reference["turns"][0]}
    return {
        **source,
        "prompt": [
            {**extra, "role": turn["role"], "content": turn["text"]}
            for extra, turn in zip(extras, conversation["turns"], strict=True)
        ],
        "prompt_id": conversation["key"],
        "rubrics": [
            {
                "tags": [f"{AXIS}{item['dimension']}"],
                **criteria[item["criterion"]]["source"],
                "criterion": criteria[item["criterion"]]["text"],
                "points": item["weight"],
            }
            for item in items
        ],
        "ideal_completions_data": ideal,
    }


def _without(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _titled(slug: str) -> str:
    words = slug.replace("_", "-").replace("healthbench", "HealthBench").replace("-", " ")
    return words[:1].upper() + words[1:]
