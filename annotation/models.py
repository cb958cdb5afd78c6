"""Human labels: rounds, who holds which slot, every click, and decisions on disputes."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from corpus.models import Collection, Criterion, Reply, Rubric
from distressbench_site.accounts.models import User


class Annotator(models.Model):
    """The person behind labels, with or without an account, known by a pseudonym."""

    pseudonym = models.CharField(max_length=64, unique=True)
    user = models.OneToOneField(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="annotator"
    )

    class Meta:
        ordering = ["pseudonym"]

    def __str__(self) -> str:
        return self.pseudonym


class Round(models.Model):
    """A labelling campaign on replies of one collection."""

    class Purpose(models.TextChoices):
        """What the labels are for; practice labels never leave the round."""

        PRACTICE = "practice", "practice"
        CALIBRATION = "calibration", "calibration"
        AUDIT = "audit", "audit"

    class Status(models.TextChoices):
        """Only an open round hands out replies."""

        DRAFT = "draft", "draft"
        OPEN = "open", "open"
        PAUSED = "paused", "paused"
        CLOSED = "closed", "closed"

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="rounds")
    name = models.CharField(max_length=200, unique=True)
    purpose = models.CharField(max_length=11, choices=Purpose.choices, default=Purpose.CALIBRATION)
    guidelines = models.TextField(blank=True)
    overlap = models.PositiveSmallIntegerField(
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(10)],
        help_text="How many people label each reply.",
    )
    status = models.CharField(max_length=6, choices=Status.choices, default=Status.DRAFT)
    seed = models.PositiveIntegerField(default=0)
    plan = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="rounds_created"
    )
    created_at = models.DateTimeField(default=timezone.now)
    opened_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(overlap__gte=1, overlap__lte=10),
                name="annotation_round_overlap_1_to_10",
                violation_error_message="The overlap is a whole number from 1 to 10.",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["draft", "open", "paused", "closed"]),
                name="annotation_round_status_known",
            ),
            models.CheckConstraint(
                condition=Q(purpose__in=["practice", "calibration", "audit"]),
                name="annotation_round_purpose_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RoundMember(models.Model):
    """An annotator who may label in a round."""

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="members")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="memberships")
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["round", "annotator"]
        constraints = [
            models.UniqueConstraint(
                fields=["round", "annotator"], name="annotation_roundmember_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.round}"


class RoundItem(models.Model):
    """One reply in a round; a hidden repeat is another item for the same annotator."""

    class Kind(models.TextChoices):
        """Only regular items enter agreement."""

        REGULAR = "regular", "regular"
        REPEAT = "repeat", "repeat"
        GOLD = "gold", "gold"

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="items")
    reply = models.ForeignKey(Reply, on_delete=models.PROTECT, related_name="round_items")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="round_items")
    kind = models.CharField(max_length=7, choices=Kind.choices, default=Kind.REGULAR)
    occurrence = models.PositiveSmallIntegerField(default=0)
    reserved_for = models.ForeignKey(
        Annotator, on_delete=models.PROTECT, null=True, blank=True, related_name="reserved_items"
    )
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["round", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["round", "reply", "occurrence"], name="annotation_rounditem_once"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["regular", "repeat", "gold"]),
                name="annotation_rounditem_kind_known",
            ),
            models.CheckConstraint(
                condition=~Q(kind="repeat") | Q(reserved_for__isnull=False),
                name="annotation_rounditem_repeat_reserved",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.pk} of {self.round}"


class RoundCriterion(models.Model):
    """A criterion that is asked of an item; labels exist only for these."""

    round_item = models.ForeignKey(RoundItem, on_delete=models.PROTECT, related_name="asked")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="asked")
    inclusion_probability = models.FloatField(default=1.0)

    class Meta:
        ordering = ["round_item", "id"]
        verbose_name_plural = "round criteria"
        constraints = [
            models.UniqueConstraint(
                fields=["round_item", "criterion"], name="annotation_roundcriterion_once"
            ),
            models.CheckConstraint(
                condition=Q(inclusion_probability__gt=0, inclusion_probability__lte=1),
                name="annotation_roundcriterion_probability_0_to_1",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.criterion.key} of item {self.round_item_id}"


class Slot(models.Model):
    """One place for one annotator on an item; an item has as many as the overlap."""

    round_item = models.ForeignKey(RoundItem, on_delete=models.PROTECT, related_name="slots")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["round_item", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["round_item", "number"], name="annotation_slot_number_once"
            ),
            models.CheckConstraint(
                condition=Q(number__gte=1, number__lte=10), name="annotation_slot_number_1_to_10"
            ),
        ]

    def __str__(self) -> str:
        return f"slot {self.number} of item {self.round_item_id}"


class Assignment(models.Model):
    """One annotator's work on one item."""

    class State(models.TextChoices):
        """Active and submitted work holds a slot; nothing else does."""

        ACTIVE = "active", "in progress"
        SUBMITTED = "submitted", "submitted"
        LAPSED = "lapsed", "lapsed"
        SKIPPED = "skipped", "skipped"
        DECLINED = "declined", "declined"
        # Finished after the slot had gone to somebody else: kept, marked, out of consensus.
        SURPLUS = "surplus", "surplus"

    round_item = models.ForeignKey(RoundItem, on_delete=models.PROTECT, related_name="assignments")
    slot = models.ForeignKey(
        Slot, on_delete=models.PROTECT, null=True, blank=True, related_name="assignments"
    )
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="assignments")
    state = models.CharField(max_length=9, choices=State.choices, default=State.ACTIVE)
    lease_until = models.DateTimeField(null=True, blank=True)
    position = models.PositiveIntegerField(default=0)
    claimed_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    active_seconds = models.PositiveIntegerField(default=0)
    reason = models.CharField("reason for declining", max_length=500, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(state__in=["active", "submitted"]),
                name="annotation_assignment_slot_held_once",
                violation_error_message="Somebody else holds this slot.",
            ),
            models.UniqueConstraint(
                fields=["round_item", "annotator"], name="annotation_assignment_annotator_once"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["active", "submitted"], slot__isnull=False)
                | Q(state__in=["lapsed", "skipped", "declined", "surplus"], slot__isnull=True),
                name="annotation_assignment_slot_iff_live",
            ),
            models.CheckConstraint(
                condition=~Q(state="active") | Q(lease_until__isnull=False),
                name="annotation_assignment_active_has_lease",
            ),
            models.CheckConstraint(
                condition=~Q(state="submitted") | Q(submitted_at__isnull=False),
                name="annotation_assignment_submitted_has_date",
            ),
        ]
        indexes = [
            models.Index(fields=["annotator", "state"], name="annotation_assignment_mine"),
            models.Index(
                fields=["lease_until"],
                condition=Q(state="active"),
                name="annotation_assignment_leases",
            ),
        ]

    def __str__(self) -> str:
        return f"assignment {self.pk}"


class AssignmentEvent(models.Model):
    """What happened to an assignment, in order; append-only."""

    class Kind(models.TextChoices):
        """The acts on an assignment."""

        CLAIMED = "claimed", "claimed"
        LAPSED = "lapsed", "lapsed"
        RESUMED = "resumed", "resumed"
        SUBMITTED = "submitted", "submitted"
        REOPENED = "reopened", "reopened"
        SKIPPED = "skipped", "skipped"
        DECLINED = "declined", "declined"
        SURPLUS = "surplus", "kept as surplus"

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="events")
    kind = models.CharField(max_length=9, choices=Kind.choices)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    kind__in=[
                        "claimed",
                        "lapsed",
                        "resumed",
                        "submitted",
                        "reopened",
                        "skipped",
                        "declined",
                        "surplus",
                    ]
                ),
                name="annotation_assignmentevent_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.assignment_id}"


class Value(models.TextChoices):
    """The three answers; none is ever preselected."""

    MET = "met", "met"
    NOT_MET = "not_met", "not met"
    CANNOT_TELL = "cannot_tell", "cannot tell"


class Reason(models.TextChoices):
    """Why somebody cannot tell."""

    REPLY_AMBIGUOUS = "reply_ambiguous", "the reply is ambiguous"
    CRITERION_UNCLEAR = "criterion_unclear", "the criterion is unclear"
    NOT_APPLICABLE = "not_applicable", "it does not apply here"
    OUTSIDE_COMPETENCE = "outside_competence", "it is outside my competence"


_ANSWER = Q(value__isnull=True) | Q(value__in=["met", "not_met", "cannot_tell"])
# SQL takes a check for kept when it comes to NULL, so that a missing value is excluded by name.
_REASON = Q(reason="") | Q(
    value__isnull=False,
    value="cannot_tell",
    reason__in=["reply_ambiguous", "criterion_unclear", "not_applicable", "outside_competence"],
)


class Label(models.Model):
    """The current answer of one annotator for one criterion; replaying the events gives it.

    `quotes` is a list of {"turn", "start", "text"}: turn is the index of the reply's text, start
    counts code points, and `text` equals that text from start on.
    """

    assignment = models.ForeignKey(Assignment, on_delete=models.PROTECT, related_name="labels")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="labels")
    value = models.CharField(max_length=11, choices=Value.choices, null=True, blank=True)  # noqa: DJ001
    reason = models.CharField(max_length=18, choices=Reason.choices, blank=True)
    comment = models.TextField(blank=True)
    quotes = models.JSONField(default=list, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["assignment", "criterion"]
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "criterion"], name="annotation_label_once"
            ),
            models.CheckConstraint(condition=_ANSWER, name="annotation_label_value_known"),
            models.CheckConstraint(
                condition=_REASON, name="annotation_label_reason_only_if_cannot_tell"
            ),
        ]

    def __str__(self) -> str:
        return f"label {self.pk}"


class LabelEvent(models.Model):
    """One click or edit as it reached the server; append-only.

    The comment itself stands in LabelEventText, so that an audited redaction can blank it without
    touching this row, which keeps its SHA-256.
    """

    assignment = models.ForeignKey(
        Assignment, on_delete=models.PROTECT, related_name="label_events"
    )
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="label_events")
    client = models.CharField(max_length=64)
    seq = models.PositiveBigIntegerField()
    value = models.CharField(max_length=11, choices=Value.choices, null=True, blank=True)  # noqa: DJ001
    reason = models.CharField(max_length=18, choices=Reason.choices, blank=True)
    comment_digest = models.CharField(max_length=64, blank=True)
    quotes = models.JSONField(default=list, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["assignment", "client", "seq"], name="annotation_labelevent_seq_once"
            ),
            models.CheckConstraint(condition=_ANSWER, name="annotation_labelevent_value_known"),
            models.CheckConstraint(
                condition=_REASON, name="annotation_labelevent_reason_only_if_cannot_tell"
            ),
        ]

    def __str__(self) -> str:
        return f"label event {self.pk}"


class LabelEventText(models.Model):
    """The comment of one label event; the one thing about it that can be blanked."""

    event = models.OneToOneField(LabelEvent, on_delete=models.PROTECT, related_name="text")
    comment = models.TextField(blank=True)
    redacted_at = models.DateTimeField(null=True, blank=True)
    redacted_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="redactions"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(redacted_at__isnull=True) | Q(comment=""),
                name="annotation_labeleventtext_redacted_is_blank",
            ),
        ]

    def __str__(self) -> str:
        return f"comment of event {self.event_id}"


class Adjudication(models.Model):
    """The decision on a disputed unit, with its reason; append-only, the newest counts."""

    class Decision(models.TextChoices):
        """How a dispute can end."""

        MET = "met", "met"
        NOT_MET = "not_met", "not met"
        UNRESOLVABLE = "unresolvable", "unresolvable"

    class Confidence(models.TextChoices):
        """How sure the adjudicator is."""

        LOW = "low", "low"
        MEDIUM = "medium", "medium"
        HIGH = "high", "high"

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="adjudications")
    reply = models.ForeignKey(Reply, on_delete=models.PROTECT, related_name="adjudications")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="adjudications")
    value = models.CharField(max_length=12, choices=Decision.choices)
    reason = models.TextField()
    confidence = models.CharField(
        max_length=6, choices=Confidence.choices, default=Confidence.MEDIUM
    )
    criterion_at_fault = models.BooleanField(default=False)
    adjudicator = models.ForeignKey(
        Annotator, on_delete=models.PROTECT, related_name="adjudications"
    )
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(reason=""), name="annotation_adjudication_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(value__in=["met", "not_met", "unresolvable"]),
                name="annotation_adjudication_value_known",
            ),
            models.CheckConstraint(
                condition=Q(confidence__in=["low", "medium", "high"]),
                name="annotation_adjudication_confidence_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.value} for unit ({self.reply_id}, {self.criterion_id})"
