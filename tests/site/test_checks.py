"""No check of the database lets a value through that it does not know, or a NULL unawares."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.db.models import CheckConstraint, F, Model, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

OURS = ("accounts", "corpus", "annotation", "scoring")
MODELS = [model for label in OURS for model in apps.get_app_config(label).get_models()]
CHECKS = {
    constraint.name: (model, constraint)
    for model in MODELS
    for constraint in model._meta.constraints
    if isinstance(constraint, CheckConstraint)
}
CHOICES = {
    f"{model._meta.db_table}.{field.column}": (model, field)
    for model in MODELS
    for field in model._meta.concrete_fields
    if field.choices
}
UNKNOWN = "unknown"
pytestmark = pytest.mark.django_db


def values_of(field: models.Field) -> list[Any]:
    """Return values at and beyond the edges of what a field should hold."""
    missing = [None] if field.null else []
    if field.choices:
        return [*missing, *(value for value, _ in field.choices), UNKNOWN, ""]
    if field.is_relation or isinstance(field, models.AutoField):
        return [*missing, 1, 2]
    if isinstance(field, models.CharField | models.TextField):
        return [*missing, "", "words"]
    if isinstance(field, models.FloatField):
        return [*missing, -0.1, 0.0, 0.5, 1.0, 1.1]
    if isinstance(field, models.IntegerField):
        return [*missing, 0, 1, 10, 11, 20, 21]
    if isinstance(field, models.DateTimeField):
        return [*missing, timezone.now()]
    raise AssertionError(f"no values are known for {field}")


def rows_for(
    model: type[Model], constraint: CheckConstraint, **fixed: Any
) -> Iterator[dict[str, Any]]:
    """Yield every combination of values in the fields that a check is about."""
    names = sorted(constraint.condition.referenced_base_fields)
    fields = [model._meta.get_field(name) for name in names]
    choices = [[fixed[f.name]] if f.name in fixed else values_of(f) for f in fields]
    for values in product(*choices):
        yield {field.attname: value for field, value in zip(fields, values, strict=True)}


def passes(constraint: CheckConstraint, row: Model, *, null_passes: bool) -> bool:
    """Ask the database itself for the outcome of a check; SQL lets NULL pass."""
    values = row._get_field_expression_map(meta=row._meta)
    outcome = Coalesce(constraint.condition, null_passes, output_field=models.BooleanField())
    return Q(outcome).check(values)


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_check_comes_to_yes_or_no_whatever_is_missing(name):
    model, constraint = CHECKS[name]

    undecided = [
        values
        for values in rows_for(model, constraint)
        if passes(constraint, model(**values), null_passes=True)
        != passes(constraint, model(**values), null_passes=False)
    ]

    assert undecided == []


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_a_field_with_choices_has_a_check_that_refuses_all_others(name):
    model, field = CHOICES[name]
    others = [UNKNOWN] if field.blank and not field.null else [UNKNOWN, ""]

    def refuses(constraint: CheckConstraint) -> bool:
        return field.name in constraint.condition.referenced_base_fields and not any(
            passes(constraint, model(**values), null_passes=True)
            for other in others
            for values in rows_for(model, constraint, **{field.name: other})
        )

    assert [each.name for of, each in CHECKS.values() if of is model and refuses(each)] != []


def test_an_undecided_check_is_noticed():
    holed = CheckConstraint(condition=Q(outcome="ok") | Q(outcome=F("raw")), name="holed")
    call = CHOICES["scoring_call.outcome"][0](outcome=None, raw="")

    assert passes(holed, call, null_passes=True)
    assert not passes(holed, call, null_passes=False)
