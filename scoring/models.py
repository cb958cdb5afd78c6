"""The judge, what it said, what that is worth, and the frozen results."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from corpus.models import Collection, Conversation, Criterion, Reply, Respondent
from distressbench_site.accounts.models import User


class Judge(models.Model):
    """An immutable, numbered configuration with a digest over all that can change a verdict."""

    class Kind(models.TextChoices):
        """A chat model, or the built-in baseline without network."""

        LLM = "llm", "language model"
        BASELINE = "baseline", "baseline"

    class Mode(models.TextChoices):
        """One request per criterion, or one per reply with all its criteria."""

        CRITERION = "criterion", "one criterion at a time"
        RUBRIC = "rubric", "the whole rubric at once"

    name = models.SlugField(max_length=64)
    version = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.LLM)
    endpoint = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=200, blank=True)
    family = models.CharField(max_length=64, blank=True)
    prompt = models.TextField(blank=True)
    params = models.JSONField(default=dict, blank=True)
    # What training left behind (baseline only): frozen with the judge and part of its digest.
    artifact = models.JSONField(null=True, blank=True)
    mode = models.CharField(max_length=9, choices=Mode.choices, default=Mode.CRITERION)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="judges"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["name", "version"], name="scoring_judge_version_unique"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["llm", "baseline"], mode__in=["criterion", "rubric"]),
                name="scoring_judge_kind_and_mode_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Run(models.Model):
    """A batch of judging or of generating replies; the database owns the work."""

    class Kind(models.TextChoices):
        """What the run makes."""

        JUDGE = "judge", "judging"
        REPLIES = "replies", "generating replies"

    class Status(models.TextChoices):
        """Where the run stands."""

        PENDING = "pending", "waiting"
        RUNNING = "running", "running"
        PAUSED = "paused", "paused"
        DONE = "done", "done"
        CANCELLED = "cancelled", "cancelled"

    kind = models.CharField(max_length=7, choices=Kind.choices, default=Kind.JUDGE)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="runs")
    judge = models.ForeignKey(
        Judge, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    draws = models.PositiveSmallIntegerField(default=1)
    params = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    budget = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    last_error = models.TextField(blank=True)
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="judge", judge__isnull=False) | Q(kind="replies"),
                name="scoring_run_judging_has_judge",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "running", "paused", "done", "cancelled"]),
                name="scoring_run_status_known",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"


class RunItem(models.Model):
    """One reply's share of a run, claimed by a worker with a lease."""

    class State(models.TextChoices):
        """Where the item stands; a lapsed lease makes it pending again."""

        PENDING = "pending", "waiting"
        LEASED = "leased", "in work"
        DONE = "done", "done"
        FAILED = "failed", "failed"

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="items")
    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="run_items"
    )
    respondent = models.ForeignKey(Respondent, on_delete=models.PROTECT, related_name="run_items")
    sample = models.PositiveSmallIntegerField(default=0)
    reply = models.ForeignKey(
        Reply, on_delete=models.PROTECT, null=True, blank=True, related_name="run_items"
    )
    state = models.CharField(max_length=7, choices=State.choices, default=State.PENDING)
    worker = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "conversation", "respondent", "sample"],
                name="scoring_runitem_once",
            ),
            models.CheckConstraint(
                condition=Q(state="leased", lease_until__isnull=False) | ~Q(state="leased"),
                name="scoring_runitem_leased_has_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "leased", "done", "failed"]),
                name="scoring_runitem_state_known",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "state", "id"], name="scoring_runitem_claim"),
        ]

    def __str__(self) -> str:
        return f"item {self.pk} of run {self.run_id}"


class Call(models.Model):
    """One request to a model: written before sending, settled once."""

    class Outcome(models.TextChoices):
        """How a call ended; no outcome yet means that it was sent and not settled."""

        OK = "ok", "ok"
        PARSE = "parse", "not JSON"
        SCHEMA = "schema", "wrong schema"
        REFUSAL = "refusal", "refused"
        FILTER = "filter", "filtered"
        TIMEOUT = "timeout", "timed out"
        HTTP = "http", "HTTP error"
        CUT = "cut", "cut off"

    run_item = models.ForeignKey(RunItem, on_delete=models.PROTECT, related_name="calls")
    criterion = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, null=True, blank=True, related_name="calls"
    )
    draw = models.PositiveSmallIntegerField(default=0)
    request_digest = models.CharField(max_length=64)
    attempt = models.PositiveSmallIntegerField(default=1)
    outcome = models.CharField(  # noqa: DJ001
        max_length=7, choices=Outcome.choices, null=True, blank=True
    )
    raw = models.TextField(blank=True)
    usage = models.JSONField(default=dict, blank=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, blank=True)
    returned_model = models.CharField(max_length=200, blank=True)
    sent_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, settled_at__isnull=True)
                | Q(outcome__isnull=False, settled_at__isnull=False),
                name="scoring_call_settled_with_outcome",
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True)
                | Q(
                    outcome__in=[
                        "ok",
                        "parse",
                        "schema",
                        "refusal",
                        "filter",
                        "timeout",
                        "http",
                        "cut",
                    ]
                ),
                name="scoring_call_outcome_known",
            ),
        ]

    def __str__(self) -> str:
        return f"call {self.pk}"


class Verdict(models.Model):
    """A judge's answer for one unit; append-only, one per key."""

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="verdicts")
    reply = models.ForeignKey(Reply, on_delete=models.PROTECT, related_name="verdicts")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="verdicts")
    draw = models.PositiveSmallIntegerField(default=0)
    met = models.BooleanField()
    probability = models.FloatField(null=True, blank=True)
    explanation = models.TextField(blank=True)
    quote = models.TextField(blank=True)
    quote_found = models.BooleanField(null=True, blank=True)
    call = models.ForeignKey(
        Call, on_delete=models.PROTECT, null=True, blank=True, related_name="verdicts"
    )
    # In rubric mode the digest of the ordered criteria; empty in criterion mode.
    criteria_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["judge", "reply", "criterion", "draw", "criteria_digest"],
                name="scoring_verdict_once",
            ),
            models.CheckConstraint(
                condition=Q(probability__isnull=True) | Q(probability__gte=0, probability__lte=1),
                name="scoring_verdict_probability_0_to_1",
            ),
        ]

    def __str__(self) -> str:
        return f"verdict {self.pk}"


class Split(models.Model):
    """Each conversation of a collection in dev or test, once, before labelling."""

    collection = models.OneToOneField(Collection, on_delete=models.PROTECT, related_name="split")
    seed = models.PositiveIntegerField()
    dev_share = models.FloatField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(dev_share__gt=0, dev_share__lt=1), name="scoring_split_share_0_to_1"
            ),
        ]

    def __str__(self) -> str:
        return f"split of {self.collection}"


class SplitMember(models.Model):
    """The part that one conversation belongs to, for ever."""

    class Part(models.TextChoices):
        """Dev is for trying; test is for measuring."""

        DEV = "dev", "dev"
        TEST = "test", "test"

    split = models.ForeignKey(Split, on_delete=models.PROTECT, related_name="members")
    conversation = models.OneToOneField(
        Conversation, on_delete=models.PROTECT, related_name="split_member"
    )
    part = models.CharField(max_length=4, choices=Part.choices)

    class Meta:
        ordering = ["split", "conversation"]
        constraints = [
            models.CheckConstraint(
                condition=Q(part__in=["dev", "test"]), name="scoring_splitmember_part_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.conversation}: {self.part}"


class SplitOpening(models.Model):
    """A numbered, logged look at the test labels, with the targets written down before."""

    split = models.ForeignKey(Split, on_delete=models.PROTECT, related_name="openings")
    number = models.PositiveIntegerField()
    targets = models.JSONField(default=dict)
    reason = models.TextField()
    opened_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="split_openings"
    )
    opened_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["split", "number"]
        constraints = [
            models.UniqueConstraint(fields=["split", "number"], name="scoring_splitopening_once"),
            models.CheckConstraint(condition=~Q(reason=""), name="scoring_splitopening_has_reason"),
        ]

    def __str__(self) -> str:
        return f"opening {self.number} of {self.split}"


class Calibration(models.Model):
    """What a judge's verdicts are worth, measured against labels; immutable."""

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="calibrations")
    split = models.ForeignKey(Split, on_delete=models.PROTECT, related_name="calibrations")
    number = models.PositiveIntegerField()
    rounds = models.JSONField(default=list)
    metrics = models.JSONField()
    parameters = models.JSONField(default=dict)
    # Digest over the label values and criteria used: recomputed to tell whether it is stale.
    labels_digest = models.CharField(max_length=64)
    label_events_used = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="calibrations"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["judge", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["judge", "split", "number"], name="scoring_calibration_number_once"
            ),
        ]

    def __str__(self) -> str:
        return f"calibration {self.number} of {self.judge}"


class CalibrationDecision(models.Model):
    """What somebody decided about a calibration, and why; append-only, the newest counts."""

    class Decision(models.TextChoices):
        """The acts on a calibration."""

        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        SUPERSEDE = "supersede", "superseded"

    calibration = models.ForeignKey(Calibration, on_delete=models.PROTECT, related_name="decisions")
    decision = models.CharField(max_length=9, choices=Decision.choices)
    reason = models.TextField()
    decided_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="calibration_decisions"
    )
    decided_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(reason=""), name="scoring_calibrationdecision_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(decision__in=["approve", "reject", "supersede"]),
                name="scoring_calibrationdecision_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.calibration}: {self.decision}"


class ScoreSet(models.Model):
    """Scores computed once for a ruler and a state of the data; pages read it."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="score_sets")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="score_sets")
    calibration = models.ForeignKey(
        Calibration, on_delete=models.PROTECT, null=True, blank=True, related_name="score_sets"
    )
    ruler = models.CharField(max_length=64)
    watermark = models.CharField(max_length=64)
    payload = models.JSONField()
    computed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "ruler", "watermark"], name="scoring_scoreset_once"
            ),
        ]

    def __str__(self) -> str:
        return f"scores of {self.collection} by {self.judge}"


class Release(models.Model):
    """A frozen, checksummed bundle; its bytes are never made again."""

    name = models.SlugField(max_length=64)
    version = models.PositiveIntegerField()
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="releases")
    manifest = models.JSONField()
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="releases"
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["name", "version"], name="scoring_release_version_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class ReleaseChunk(models.Model):
    """A piece of a release's bytes, in order."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="chunks")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        ordering = ["release", "number"]
        constraints = [
            models.UniqueConstraint(fields=["release", "number"], name="scoring_releasechunk_once"),
        ]

    def __str__(self) -> str:
        return f"chunk {self.number} of {self.release}"
