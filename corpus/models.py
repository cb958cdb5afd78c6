"""What is judged: conversations, their rubrics, and the replies of respondents."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone


class Collection(models.Model):
    """A set of conversations with its own dimensions; collections never mix in a result."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    source = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.name


class Stance(models.TextChoices):
    """Whether a dimension asks a reply to do something or to abstain."""

    ACT = "act", "act"
    WITHHOLD = "withhold", "withhold"


class Dimension(models.Model):
    """One of the aspects that criteria are grouped by."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="dimensions")
    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    stance = models.CharField(max_length=8, choices=Stance.choices)
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["collection", "position", "slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "slug"], name="corpus_dimension_collection_slug_unique"
            ),
            models.CheckConstraint(
                condition=Q(stance__in=Stance.values), name="corpus_dimension_stance_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Subcategory(models.Model):
    """What kind of crisis a conversation is about."""

    collection = models.ForeignKey(
        Collection, on_delete=models.PROTECT, related_name="subcategories"
    )
    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["collection", "position", "slug"]
        verbose_name_plural = "subcategories"
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "slug"], name="corpus_subcategory_collection_slug_unique"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Conversation(models.Model):
    """Turns that a respondent answers; content is immutable, a correction supersedes."""

    class Status(models.TextChoices):
        """Whether the conversation may be used."""

        ACTIVE = "active", "active"
        EMBARGOED = "embargoed", "embargoed"
        WITHDRAWN = "withdrawn", "withdrawn"

    collection = models.ForeignKey(
        Collection, on_delete=models.PROTECT, related_name="conversations"
    )
    key = models.CharField(max_length=128)
    subcategory = models.ForeignKey(
        Subcategory, on_delete=models.PROTECT, null=True, blank=True, related_name="conversations"
    )
    locale = models.CharField(max_length=35, default="en")
    turns = models.JSONField()
    content_digest = models.CharField(max_length=64)
    multi_turn = models.BooleanField()
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.ACTIVE)
    authors = models.JSONField(default=list, blank=True)
    source = models.JSONField(default=dict, blank=True)
    supersedes = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="superseded_by"
    )

    class Meta:
        ordering = ["collection", "key"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "key"],
                name="corpus_conversation_collection_key_unique",
                violation_error_message="This collection has a conversation with this key already.",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["active", "embargoed", "withdrawn"]),
                name="corpus_conversation_status_known",
            ),
            models.CheckConstraint(
                condition=Q(supersedes__isnull=True) | ~Q(supersedes=F("id")),
                name="corpus_conversation_not_its_own_successor",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Criterion(models.Model):
    """One atomic statement about a reply, met or not met; its text never changes."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="criteria"
    )
    key = models.CharField(max_length=64)
    text = models.TextField()
    same_meaning_as = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="restatements"
    )
    reason = models.CharField("why it was restated", max_length=500, blank=True)
    source = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["conversation", "key"]
        verbose_name_plural = "criteria"
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "key"], name="corpus_criterion_conversation_key_unique"
            ),
            models.CheckConstraint(
                condition=Q(same_meaning_as__isnull=True) | ~Q(reason=""),
                name="corpus_criterion_restatement_has_reason",
                violation_error_message="A restated criterion needs a reason.",
            ),
        ]

    def __str__(self) -> str:
        return self.text


class Rubric(models.Model):
    """One version of a conversation's criteria; once published it never changes."""

    class Status(models.TextChoices):
        """A draft is edited; a published rubric is used; a retired one was used."""

        DRAFT = "draft", "draft"
        PUBLISHED = "published", "published"
        RETIRED = "retired", "retired"

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="rubrics")
    version = models.PositiveIntegerField()
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.DRAFT)
    published_at = models.DateTimeField(null=True, blank=True)
    author = models.CharField(max_length=200, blank=True)
    change_note = models.TextField(blank=True)

    class Meta:
        ordering = ["conversation", "version"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "version"], name="corpus_rubric_version_unique"
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="draft"),
                name="corpus_rubric_one_draft",
                violation_error_message="This conversation has a draft rubric already.",
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="published"),
                name="corpus_rubric_one_published",
            ),
            models.CheckConstraint(
                condition=Q(status="draft", published_at__isnull=True)
                | Q(status__in=["published", "retired"], published_at__isnull=False),
                name="corpus_rubric_published_has_date",
            ),
            models.CheckConstraint(
                condition=Q(version__gte=1), name="corpus_rubric_version_from_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.conversation} v{self.version}"


class RubricItem(models.Model):
    """A criterion's place in a rubric: weight, dimension, order."""

    rubric = models.ForeignKey(Rubric, on_delete=models.CASCADE, related_name="items")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="rubric_items")
    dimension = models.ForeignKey(Dimension, on_delete=models.PROTECT, related_name="rubric_items")
    weight = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(20)]
    )
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["rubric", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["rubric", "criterion"], name="corpus_rubricitem_criterion_once"
            ),
            models.UniqueConstraint(
                fields=["rubric", "position"], name="corpus_rubricitem_position_once"
            ),
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=20),
                name="corpus_rubricitem_weight_1_to_20",
                violation_error_message="A weight is a whole number from 1 to 20.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rubric}: {self.criterion.key}"


class Respondent(models.Model):
    """Who replies: a model with its full configuration, the reference, or a floor line."""

    class Kind(models.TextChoices):
        """What the respondent is; only models are ranked."""

        MODEL = "model", "model"
        REFERENCE = "reference", "reference"
        FLOOR = "floor", "floor"

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=9, choices=Kind.choices, default=Kind.MODEL)
    family = models.CharField(max_length=64, blank=True)
    config = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["model", "reference", "floor"]),
                name="corpus_respondent_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Reply(models.Model):
    """What a respondent wrote in a conversation: one text per place; immutable."""

    class Outcome(models.TextChoices):
        """How the respondent answered; each of these is labelled, judged and scored."""

        ANSWERED = "answered", "answered"
        REFUSED = "refused", "refused"
        FILTERED = "filtered", "filtered"
        TRUNCATED = "truncated", "truncated"
        EMPTY = "empty", "empty"

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="replies")
    respondent = models.ForeignKey(Respondent, on_delete=models.PROTECT, related_name="replies")
    sample = models.PositiveSmallIntegerField(default=0)
    turns = models.JSONField()
    digest = models.CharField(max_length=64)
    outcome = models.CharField(max_length=9, choices=Outcome.choices, default=Outcome.ANSWERED)
    finish_reason = models.CharField(max_length=64, blank=True)
    returned_model = models.CharField(max_length=200, blank=True)
    authors = models.JSONField(default=list, blank=True)
    source = models.JSONField(default=dict, blank=True)
    replied_on = models.DateField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["conversation", "respondent", "sample"]
        verbose_name_plural = "replies"
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "respondent", "sample"], name="corpus_reply_sample_unique"
            ),
            models.CheckConstraint(
                condition=Q(outcome__in=["answered", "refused", "filtered", "truncated", "empty"]),
                name="corpus_reply_outcome_known",
            ),
        ]

    def __str__(self) -> str:
        return f"reply {self.pk}"
