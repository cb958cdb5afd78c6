"""The rows of the tables of judges and scores."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from corpus.schema.fields import (
    Big,
    ConversationKey,
    CriterionKey,
    Digest,
    Free,
    Long,
    Moment,
    Name,
    Numbered,
    Probability,
    Row,
    Short,
    Slug,
    Small,
    Spoken,
    Whole,
    refuse,
)


class OpeningRow(Row):
    """A logged look at the test labels."""

    number: Numbered
    targets: Free
    reason: Spoken
    opened_at: Moment


class SplitRow(Row):
    """The parts of a collection."""

    collection: Slug
    seed: Whole
    dev_share: Annotated[float, Field(gt=0, lt=1)]
    created_at: Moment
    dev: list[ConversationKey]
    test: list[ConversationKey]
    openings: list[OpeningRow]

    @model_validator(mode="after")
    def _is_coherent(self) -> Self:
        for part in (self.dev, self.test):
            if part != sorted(set(part)):
                raise refuse("the keys of a part must be sorted, each once")
        both = set(self.dev) & set(self.test)
        if both:
            raise refuse(f"{sorted(both)[0]} stands in dev and in test")
        numbers = [opening.number for opening in self.openings]
        if numbers != sorted(set(numbers)):
            raise refuse("the numbers of the openings must rise")
        return self


class JudgeRow(Row):
    """An immutable configuration."""

    name: Slug
    version: Numbered
    kind: Literal["llm", "baseline"]
    endpoint: Short
    model: Long
    family: Short
    prompt: str
    params: Free
    artifact: Any
    mode: Literal["criterion", "rubric"]
    digest: Digest
    created_at: Moment


def _empty_or_digest(value: str) -> str:
    if value and (len(value) != 64 or set(value) - set("0123456789abcdef")):
        raise refuse("must be empty or a SHA-256 in 64 small hexadecimal digits")
    return value


class VerdictRow(Row):
    """A judge's answer for one unit."""

    judge: Slug
    judge_version: Numbered
    collection: Slug
    conversation: ConversationKey
    respondent: Slug
    sample: Small
    criterion: CriterionKey
    draw: Small
    criteria_digest: Annotated[str, AfterValidator(_empty_or_digest)]
    met: bool
    probability: Probability | None
    explanation: str
    quote: str
    quote_found: bool | None
    created_at: Moment


class DecisionRow(Row):
    """What was decided about a calibration."""

    decision: Literal["approve", "reject", "supersede"]
    reason: Spoken
    decided_at: Moment


class CalibrationRow(Row):
    """What a judge's verdicts are worth."""

    judge: Slug
    judge_version: Numbered
    collection: Slug
    number: Numbered
    rounds: list[Name]
    metrics: Free
    parameters: Free
    labels_digest: Digest
    label_events_used: Big
    digest: Digest
    created_at: Moment
    decisions: list[DecisionRow]


class ScoreRow(Row):
    """The scores of a collection by a judge; derived, so that an import can compare them."""

    collection: Slug
    judge: Slug
    judge_version: Numbered
    calibration: Numbered | None
    ruler: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    payload: Free
