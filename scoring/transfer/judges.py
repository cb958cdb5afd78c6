"""Judges, the split and verdicts, into and out of a bundle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import Q, QuerySet

from corpus.schema.fields import moment_text, parse_moment
from corpus.transfer.collections import collection_slugs
from corpus.transfer.conversations import conversation_batches
from corpus.transfer.table import Key, Problem, Scope, Table, written
from scoring.bundle.rows import JudgeRow, SplitRow, VerdictRow
from scoring.models import Judge, Split, SplitMember, SplitOpening, Verdict
from scoring.selectors import judge_digest
from scoring.transfer.index import KnownJudge, ScoringIndex


def judges_in(scope: Scope) -> "QuerySet[Judge]":
    """Return the judges in scope: those that judged or were measured there."""
    found = Judge.objects.order_by()
    if scope.collections is None:
        return found
    verdicts = Verdict.objects.filter(reply__conversation__collection__slug__in=scope.collections)
    return found.filter(
        Q(pk__in=verdicts.order_by().values("judge"))
        | Q(calibrations__split__collection__slug__in=scope.collections)
    ).distinct()


class SplitTable(Table[SplitRow]):
    """Which conversations are for trying, and which are for measuring."""

    name: ClassVar[str] = "splits"
    key: ClassVar[tuple[str, ...]] = ("collection",)
    row = SplitRow

    def __init__(self, index: ScoringIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[SplitRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored splits."""
        found = Split.objects.filter(collection__slug__in=[row.collection for row in rows])
        return {(one.collection.slug,): _split(one) for one in found.select_related("collection")}

    def problems(self, row: SplitRow, line: int) -> Iterator[Problem]:
        """Refuse parts of unknown conversations."""
        known = self._index.corpus.collection(row.collection)
        if known is None:
            yield "collection", row.collection, "there is no such collection"
            return
        for part in ("dev", "test"):
            for number, key in enumerate(getattr(row, part)):
                if key not in known.conversations:
                    field = f"{part}[{number}]"
                    yield field, key, "the collection has no such conversation"

    def admit(self, row: SplitRow, line: int) -> None:
        """Remember a split."""
        self._index.splits.setdefault(row.collection, None)

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused split."""
        self._index.splits.setdefault(raw["collection"], None)

    def write(self, rows: Callable[[], Iterator[list[SplitRow]]]) -> None:
        """Insert splits with their parts and openings."""
        for chunk in rows():
            for row in chunk:
                self._write_split(row)

    def _write_split(self, row: SplitRow) -> None:
        collection = self._index.corpus.collection(row.collection)
        assert collection is not None
        split = Split.objects.create(
            collection_id=written(collection.pk),
            seed=row.seed,
            dev_share=row.dev_share,
            created_at=parse_moment(row.created_at),
        )
        self._index.splits[row.collection] = split.pk
        SplitMember.objects.bulk_create(
            (
                SplitMember(
                    split=split,
                    conversation_id=written(collection.conversations[key].pk),
                    part=part,
                )
                for part in ("dev", "test")
                for key in getattr(row, part)
            ),
            batch_size=500,
        )
        SplitOpening.objects.bulk_create(
            SplitOpening(
                split=split,
                number=opening.number,
                targets=opening.targets,
                reason=opening.reason,
                opened_at=parse_moment(opening.opened_at),
            )
            for opening in row.openings
        )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the splits."""
        for slug in collection_slugs(scope):
            found = Split.objects.filter(collection__slug=slug).select_related("collection")
            for one in found:
                yield _split(one)


class JudgeTable(Table[JudgeRow]):
    """The configurations that judged."""

    name: ClassVar[str] = "judges"
    key: ClassVar[tuple[str, ...]] = ("name", "version")
    row = JudgeRow

    def __init__(self, index: ScoringIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[JudgeRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored judges."""
        pks = [
            known.pk
            for row in rows
            if (known := self._index.judges.get((row.name, row.version))) and known.pk is not None
        ]
        return {(one.name, one.version): _judge(one) for one in Judge.objects.filter(pk__in=pks)}

    def problems(self, row: JudgeRow, line: int) -> Iterator[Problem]:
        """Refuse a digest of something else, and a configuration that is stored already."""
        made = judge_digest(
            kind=row.kind,
            endpoint=row.endpoint,
            model=row.model,
            prompt=row.prompt,
            params=row.params,
            artifact=row.artifact,
            mode=row.mode,
        )
        if made != row.digest:
            yield "digest", row.digest, "this is not the digest of the judge in this row"
            return
        for (name, version), known in self._index.judges.items():
            if known.digest == row.digest:
                reason = f"the same judge is known as {name} v{version}"
                yield "digest", row.digest, reason

    def admit(self, row: JudgeRow, line: int) -> None:
        """Remember a judge."""
        self._index.judges.setdefault(
            (row.name, row.version), KnownJudge(None, row.mode, row.digest)
        )

    def mention(self, raw: dict[str, Any], line: int) -> None:
        """Remember a refused judge."""
        self._index.judges.setdefault((raw["name"], raw["version"]), KnownJudge(None, None, ""))

    def write(self, rows: Callable[[], Iterator[list[JudgeRow]]]) -> None:
        """Insert judges."""
        for chunk in rows():
            for one in Judge.objects.bulk_create(
                Judge(
                    **row.model_dump(exclude={"created_at"}),
                    created_at=parse_moment(row.created_at),
                )
                for row in chunk
            ):
                self._index.judges[one.name, one.version].pk = one.pk

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the judges."""
        keys = judges_in(scope).values_list("name", "version", "pk")
        for _, _, pk in sorted(keys):
            yield _judge(Judge.objects.get(pk=pk))


class VerdictTable(Table[VerdictRow]):
    """What judges answered."""

    name: ClassVar[str] = "verdicts"
    key: ClassVar[tuple[str, ...]] = (
        "judge",
        "judge_version",
        "collection",
        "conversation",
        "respondent",
        "sample",
        "criterion",
        "draw",
        "criteria_digest",
    )
    row = VerdictRow

    def __init__(self, index: ScoringIndex) -> None:
        self._index = index

    def stored(self, rows: Sequence[VerdictRow]) -> Mapping[Key, dict[str, Any]]:
        """Return the stored verdicts."""
        judges = {
            known.pk: key
            for row in rows
            if (known := self._index.judges.get(key := (row.judge, row.judge_version)))
            and known.pk is not None
        }
        pks = self._index.corpus.conversation_pks({(r.collection, r.conversation) for r in rows})
        if not judges or not pks:
            return {}
        found = Verdict.objects.filter(
            judge__in=judges, reply__conversation__in=pks, draw__in={row.draw for row in rows}
        )
        return {tuple(row[part] for part in self.key): row for row in _verdicts(found, judges, pks)}

    def problems(self, row: VerdictRow, line: int) -> Iterator[Problem]:
        """Refuse an answer by nobody, about nothing, or with the key of the other mode."""
        found = self._index.unit_problems(row)
        yield from found
        if found:
            return
        mode = self._index.judges[row.judge, row.judge_version].mode
        if mode == "criterion" and row.criteria_digest:
            reason = "the judge answers one criterion at a time, so this is empty"
            yield "criteria_digest", row.criteria_digest, reason
        elif mode == "rubric" and not row.criteria_digest:
            reason = "the judge answers whole rubrics, so this is the digest of the criteria"
            yield "criteria_digest", row.criteria_digest, reason

    def write(self, rows: Callable[[], Iterator[list[VerdictRow]]]) -> None:
        """Insert verdicts; the calls behind them stay where they were made."""
        for chunk in rows():
            Verdict.objects.bulk_create(self._made(row) for row in chunk)

    def _made(self, row: VerdictRow) -> Verdict:
        known = self._index.corpus.conversation(row.collection, row.conversation)
        assert known is not None
        return Verdict(
            judge_id=written(self._index.judges[row.judge, row.judge_version].pk),
            reply_id=known.replies[row.respondent, row.sample],
            criterion_id=written(known.criteria[row.criterion]),
            draw=row.draw,
            met=row.met,
            probability=row.probability,
            explanation=row.explanation,
            quote=row.quote,
            quote_found=row.quote_found,
            criteria_digest=row.criteria_digest,
            created_at=parse_moment(row.created_at),
        )

    def read(self, scope: Scope) -> Iterator[dict[str, Any]]:
        """Yield the verdicts."""
        for judge in sorted(judges_in(scope), key=lambda one: (one.name, one.version)):
            judges = {judge.pk: (judge.name, judge.version)}
            for slug, batch in conversation_batches(scope):
                pks = {pk: (slug, key) for pk, key in batch.items()}
                found = Verdict.objects.filter(judge=judge, reply__conversation__in=pks)
                rows = _verdicts(found, judges, pks)
                yield from sorted(rows, key=lambda row: tuple(row[part] for part in self.key))


def _split(one: Split) -> dict[str, Any]:
    parts: dict[str, list[str]] = {"dev": [], "test": []}
    for part, key in one.members.order_by().values_list("part", "conversation__key"):
        parts[part].append(key)
    return {
        "collection": one.collection.slug,
        "seed": one.seed,
        "dev_share": one.dev_share,
        "created_at": moment_text(one.created_at),
        "dev": sorted(parts["dev"]),
        "test": sorted(parts["test"]),
        "openings": [
            {
                "number": opening.number,
                "targets": opening.targets,
                "reason": opening.reason,
                "opened_at": moment_text(opening.opened_at),
            }
            for opening in one.openings.order_by("number")
        ],
    }


def _judge(one: Judge) -> dict[str, Any]:
    found = {name: getattr(one, name) for name in JudgeRow.model_fields}
    return {**found, "created_at": moment_text(one.created_at)}


_VERDICT_FIELDS = (
    "draw",
    "criteria_digest",
    "met",
    "probability",
    "explanation",
    "quote",
    "quote_found",
)


def _verdicts(
    found: "QuerySet[Verdict]",
    judges: Mapping[int, tuple[str, int]],
    conversations: Mapping[int, tuple[str, str]],
) -> list[dict[str, Any]]:
    rows = []
    for (
        judge,
        conversation,
        respondent,
        sample,
        criterion,
        at,
        *values,
    ) in found.order_by().values_list(
        "judge_id",
        "reply__conversation_id",
        "reply__respondent__slug",
        "reply__sample",
        "criterion__key",
        "created_at",
        *_VERDICT_FIELDS,
    ):
        name, version = judges[judge]
        collection, key = conversations[conversation]
        rows.append(
            {
                "judge": name,
                "judge_version": version,
                "collection": collection,
                "conversation": key,
                "respondent": respondent,
                "sample": sample,
                "criterion": criterion,
                "created_at": moment_text(at),
                **dict(zip(_VERDICT_FIELDS, values, strict=True)),
            }
        )
    return rows
