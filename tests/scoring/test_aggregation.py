"""Scores from verdicts, checked by a slow reading of the definitions and by the oracle."""

import dataclasses
import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.bootstrap import Estimate, clopper_pearson, t_quantile
from scoring.aggregation import (
    Verdicts,
    clustered_mean,
    paired_difference,
    ratio_estimate,
    recognition_without_routing,
    respondent_scores,
    share_estimate,
)

pytestmark = pytest.mark.no_database

ORACLE = json.loads((Path(__file__).parents[1] / "oracles/calibration_oracle.json").read_text())
TOLERANCE = ORACLE["meta"]["tolerance"]
CLUSTERED = [case for case in ORACLE["cases"] if case["kind"] == "clustered_se"]
CONDITIONAL = next(case for case in ORACLE["cases"] if case["kind"] == "conditional_rate")

RECOGNITION, RESOURCES, OTHER = 0, 1, 2


def make_verdicts(rows):
    """Build verdicts from (respondent, conversation, sample, dimension, weight, met or None)."""
    criterion = defaultdict(int)
    keys = []
    for row in rows:
        keys.append(criterion[row[:3]])
        criterion[row[:3]] += 1
    columns = list(zip(*rows, strict=True)) or [()] * 6
    return Verdicts(
        respondent=np.array(columns[0], dtype=int),
        conversation=np.array(columns[1], dtype=int),
        sample=np.array(columns[2], dtype=int),
        criterion=np.array(keys, dtype=int),
        dimension=np.array(columns[3], dtype=int),
        weight=np.array(columns[4], dtype=float),
        met=np.array([bool(met) for met in columns[5]], dtype=bool),
        judged=np.array([met is not None for met in columns[5]], dtype=bool),
    )


def only(verdicts):
    (score,) = respondent_scores(verdicts)
    return score


def slow_score(rows, respondent):
    """Read the definition row by row: replies, samples, conversations."""
    replies = defaultdict(list)
    for r, c, s, _, weight, met in rows:
        if r == respondent:
            replies[c, s].append((weight, met))
    conversations = defaultdict(list)
    for (c, _), criteria in replies.items():
        judged = sum(w for w, met in criteria if met is not None)
        if judged >= sum(w for w, _ in criteria) / 2:
            conversations[c].append(sum(w for w, met in criteria if met) / judged)
    if not conversations:
        return None
    return sum(sum(s) / len(s) for s in conversations.values()) / len(conversations)


def test_a_score_is_met_weight_over_judged_weight_averaged_over_conversations():
    rows = [
        (0, 0, 0, OTHER, 3, True),
        (0, 0, 0, OTHER, 1, False),  # 3/4
        (0, 1, 0, OTHER, 5, False),
        (0, 1, 0, OTHER, 5, True),  # 5/10
    ]
    score = only(make_verdicts(rows)).overall
    assert score.score == Estimate(value=0.625, reason="too_few_conversations")
    # Pooled: 8 of 14.
    assert score.pooled.value == pytest.approx(8 / 14)
    assert (score.n_conversations, score.n_replies, score.missing_weight) == (2, 2, 0.0)
    assert score.bounds is None


def test_samples_average_within_the_conversation_which_stays_the_cluster():
    rows = [(0, 0, s, OTHER, 1, s > 0) for s in range(4)] + [(0, 1, 0, OTHER, 1, False)]
    score = only(make_verdicts(rows)).overall
    assert score.score.value == pytest.approx((3 / 4 + 0) / 2)
    assert score.pooled.value == pytest.approx((3 / 4 + 0) / 2)
    assert (score.n_conversations, score.n_replies) == (2, 5)


def test_the_interval_is_students_over_conversation_scores():
    shares = [0.2, 0.4, 0.6, 0.6, 0.8, 1.0]
    rows = [(0, c, 0, OTHER, 1, k < 5 * s) for c, s in enumerate(shares) for k in range(5)]
    estimate = only(make_verdicts(rows)).overall.score
    half = t_quantile(5) * np.std(shares, ddof=1) / math.sqrt(6)
    assert (estimate.value, estimate.method) == (pytest.approx(0.6), "t")
    assert (estimate.low, estimate.high) == pytest.approx((0.6 - half, 0.6 + half))


@pytest.mark.parametrize("met", [True, False])
def test_all_equal_conversations_do_not_give_a_zero_width_interval(met):
    rows = [(0, c, 0, OTHER, 2, met) for c in range(20)]
    score = only(make_verdicts(rows)).overall
    for estimate in (score.score, score.pooled):
        low, high = clopper_pearson(20 * met, 20)
        assert (estimate.low, estimate.high) == pytest.approx((low, high))
        assert estimate.method == "exact"
        assert estimate.low < estimate.high


def test_a_dimension_score_uses_conversations_that_have_the_dimension():
    rows = [
        (0, 0, 0, RECOGNITION, 2, True),
        (0, 0, 0, RESOURCES, 8, False),
        (0, 1, 0, RECOGNITION, 2, False),
    ]
    dimensions = only(make_verdicts(rows)).dimensions
    assert dimensions[RECOGNITION].score.value == 0.5
    assert dimensions[RECOGNITION].n_conversations == 2
    assert dimensions[RESOURCES].score.value == 0.0
    assert dimensions[RESOURCES].n_conversations == 1


def test_a_respondent_without_a_dimension_has_no_score_in_it():
    rows = [(0, 0, 0, RECOGNITION, 1, True), (1, 0, 0, RESOURCES, 1, True)]
    first, second = respondent_scores(make_verdicts(rows))
    assert list(first.dimensions) == [RECOGNITION]
    assert list(second.dimensions) == [RESOURCES]


def test_a_reply_with_under_half_of_its_weight_judged_has_no_score():
    rows = [
        (0, 0, 0, OTHER, 49, True),
        (0, 0, 0, OTHER, 51, None),  # 49 % judged: no score
        (0, 1, 0, OTHER, 50, False),
        (0, 1, 0, OTHER, 50, None),  # half judged: 0
    ]
    score = only(make_verdicts(rows)).overall
    assert (score.score.value, score.n_conversations, score.n_unscored) == (0.0, 1, 1)


def test_a_respondent_of_whom_nothing_is_judged_has_no_score_but_a_reason():
    score = only(make_verdicts([(0, 0, 0, OTHER, 3, None)])).overall
    assert score.score == Estimate(value=None, reason="too_little_judged")
    assert score.pooled == Estimate(value=None, reason="empty_denominator")
    assert (score.missing_weight, score.bounds) == (1.0, (0.0, 1.0))


def test_bounds_are_shown_above_five_percent_missing_weight():
    rows = [(0, 0, 0, OTHER, 1, True)] * 19 + [(0, 0, 0, OTHER, 1, None)]
    assert only(make_verdicts(rows)).overall.bounds is None  # exactly 5 %
    rows = [
        (0, 0, 0, OTHER, 6, True),
        (0, 0, 0, OTHER, 4, None),  # 0.6 to 1
        (0, 1, 0, OTHER, 1, False),  # 0
    ]
    score = only(make_verdicts(rows)).overall
    assert score.missing_weight == pytest.approx(4 / 11)
    assert score.bounds == pytest.approx((0.3, 0.5))


def test_an_unjudged_criterion_is_not_a_failure():
    rows = [(0, 0, 0, OTHER, 6, True), (0, 0, 0, OTHER, 4, None)]
    assert only(make_verdicts(rows)).overall.score.value == 1.0


def test_met_is_not_read_where_a_criterion_is_unjudged():
    verdicts = make_verdicts([(0, 0, 0, OTHER, 1, None), (0, 0, 0, OTHER, 1, False)])
    lying = dataclasses.replace(verdicts, met=np.array([True, False]))
    assert only(lying) == only(verdicts)


def test_a_second_verdict_for_a_criterion_of_a_reply_is_refused():
    verdicts = make_verdicts([(0, 0, 0, OTHER, 1, True), (0, 0, 0, OTHER, 1, True)])
    with pytest.raises(ValueError, match="two verdicts"):
        dataclasses.replace(verdicts, criterion=np.array([3, 3]))


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_is_not_positive_is_refused(weight):
    with pytest.raises(ValueError, match="positive"):
        make_verdicts([(0, 0, 0, OTHER, weight, True)])


def test_no_verdicts_give_no_scores():
    assert respondent_scores(make_verdicts([])) == ()


@pytest.mark.parametrize("case", CLUSTERED, ids=lambda case: case["name"])
def test_clustered_errors_equal_the_oracle(case):
    a, b = np.array(case["inputs"]["score_a"]), np.array(case["inputs"]["score_b"])
    cluster = np.array(case["inputs"]["cluster"])
    for values, key in ((a, "model_a"), (a - b, "paired_difference_a_minus_b")):
        expected = case["expected"][key]
        mean, error, _ = clustered_mean(values, cluster)
        assert mean == pytest.approx(expected["mean"], abs=TOLERANCE)
        assert error == pytest.approx(expected["se_clustered_G_over_G_minus_1"], abs=TOLERANCE)
    difference = paired_difference(a, b, cluster)
    groups = len(set(case["inputs"]["cluster"]))
    expected = case["expected"]["paired_difference_a_minus_b"]
    half = t_quantile(groups - 1) * expected["se_clustered_G_over_G_minus_1"]
    assert (difference.low, difference.high) == pytest.approx(
        (expected["mean"] - half, expected["mean"] + half)
    )


def test_a_difference_without_pairs_or_spread_has_a_reason():
    none = np.array([])
    assert paired_difference(none, none, none).reason == "no_common_conversations"
    same = np.full(9, 0.5)
    assert paired_difference(same, same, np.arange(9)) == Estimate(value=0.0, reason="no_spread")
    assert paired_difference(same[:3], same[:3], np.arange(3)).reason == "too_few_conversations"


def conditional_rows():
    """Spell the oracle's flags out as criteria: a second resource criterion is always met."""
    inputs = CONDITIONAL["inputs"]
    rows = []
    for scenario, model, recognised, failed in zip(
        inputs["scenario"],
        inputs["model"],
        inputs["all_recognition_satisfied"],
        inputs["any_resource_failed"],
        strict=True,
    ):
        for dimension, met in (
            (RECOGNITION, True),
            (RECOGNITION, bool(recognised)),
            (RESOURCES, True),
            (RESOURCES, not failed),
        ):
            rows.append((model, scenario, 0, dimension, 1, met))
    return rows


def routing(rows, **options):
    return recognition_without_routing(
        make_verdicts(rows), recognition=RECOGNITION, resources=RESOURCES, **options
    )


def test_recognition_without_routing_equals_the_oracle():
    expected = CONDITIONAL["expected"]
    findings = routing(conditional_rows())
    pooled = findings.pooled.any_not_met
    assert pooled.rate.value == pytest.approx(expected["rate"], abs=TOLERANCE)
    assert (pooled.numerator, pooled.denominator) == (
        expected["numerator"],
        expected["denominator"],
    )
    assert pooled.clusters == expected["n_clusters_in_denominator"]
    # The oracle's error leaves out the factor G/(G-1) for few clusters, which the interval has.
    error = expected["se_clustered"] * math.sqrt(pooled.clusters / (pooled.clusters - 1))
    half = t_quantile(pooled.clusters - 1) * error
    assert pooled.rate.low == pytest.approx(expected["rate"] - half, abs=TOLERANCE)
    assert pooled.rate.high == pytest.approx(expected["rate"] + half, abs=TOLERANCE)
    for model, (numerator, denominator) in expected["per_model"].items():
        own = findings.respondents[int(model)].any_not_met
        assert (own.numerator, own.denominator) == (numerator, denominator)
    # The second resource criterion is always met, so no pair has none met.
    assert findings.pooled.none_met.numerator == 0


def test_none_met_is_stricter_than_any_not_met():
    rows = [(0, 0, 0, RECOGNITION, 1, True), (0, 1, 0, RECOGNITION, 1, True)]
    rows += [(0, 0, 0, RESOURCES, 1, True), (0, 0, 0, RESOURCES, 1, False)]
    rows += [(0, 1, 0, RESOURCES, 1, False), (0, 1, 0, RESOURCES, 1, False)]
    pooled = routing(rows).pooled
    assert (pooled.any_not_met.rate.value, pooled.none_met.rate.value) == (1.0, 0.5)


def test_references_are_left_out():
    rows = [*conditional_rows(), (99, 0, 0, RECOGNITION, 1, True), (99, 0, 0, RESOURCES, 1, False)]
    assert routing(rows, excluded=[99]) == routing(conditional_rows())
    assert routing(rows) != routing(conditional_rows())


def test_a_conversation_without_recognition_or_resource_criteria_is_excluded():
    # all([]) is true: neither pair may slip into the denominator.
    rows = [(0, 0, 0, RESOURCES, 1, False), (0, 1, 0, RECOGNITION, 1, True)]
    findings = routing(rows)
    assert findings.n_not_applicable == 2
    rate = findings.pooled.any_not_met.rate
    assert rate == Estimate(value=None, reason="empty_denominator")
    assert findings.respondents[0].none_met.rate.value is None


def test_samples_weigh_one_over_their_number():
    rows = []
    for sample, routed in enumerate([False, True, True, True]):
        rows += [(0, 0, sample, RECOGNITION, 1, True), (0, 0, sample, RESOURCES, 1, routed)]
    rows += [(0, 1, 0, RECOGNITION, 1, True), (0, 1, 0, RESOURCES, 1, False)]
    result = routing(rows).pooled.any_not_met
    assert (result.numerator, result.denominator) == (1.25, 2.0)


@pytest.mark.parametrize(
    ("recognition", "resources", "any_not_met", "none_met"),
    [
        # (denominator, open) of each measure
        ([True, None], [False], (0, 1), (0, 1)),
        ([False, None], [False], (0, 0), (0, 0)),  # recognition was missed whatever the rest
        ([True], [None], (0, 1), (0, 1)),
        ([True], [False, None], (1, 0), (0, 1)),  # one is not met whatever the other
        ([True], [True, None], (0, 1), (1, 0)),  # some is met whatever the other
    ],
)
def test_a_pair_left_open_by_an_unjudged_criterion_is_counted(
    recognition, resources, any_not_met, none_met
):
    rows = [(0, 0, 0, RECOGNITION, 1, met) for met in recognition]
    rows += [(0, 0, 0, RESOURCES, 1, met) for met in resources]
    pooled = routing(rows).pooled
    assert (pooled.any_not_met.denominator, pooled.any_not_met.open) == any_not_met
    assert (pooled.none_met.denominator, pooled.none_met.open) == none_met


def test_a_rate_without_failures_has_an_interval_of_some_width():
    rows = [(0, c, 0, d, 1, True) for c in range(30) for d in (RECOGNITION, RESOURCES)]
    rate = routing(rows).pooled.any_not_met.rate
    assert (rate.value, rate.low) == (0.0, 0.0)
    assert rate.high == pytest.approx(clopper_pearson(0, 30)[1])


def test_a_ratio_over_equal_denominators_is_the_clustered_mean():
    values, cluster = np.random.default_rng(3).random(40), np.arange(40) // 4
    ratio = ratio_estimate(values, np.ones(40), cluster)
    direct = share_estimate(*clustered_mean(values, cluster))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx(
        (direct.value, direct.low, direct.high)
    )


rows_strategy = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 7),
        st.integers(0, 1),
        st.sampled_from([RECOGNITION, RESOURCES, OTHER]),
        st.integers(1, 20),
        st.sampled_from([True, False, None]),
    ),
    max_size=80,
)


@settings(deadline=None, max_examples=80)
@given(rows_strategy, st.randoms(use_true_random=False))
def test_scores_follow_the_definition_in_any_order_of_rows(rows, random):
    scores = respondent_scores(make_verdicts(rows))
    assert [s.respondent for s in scores] == sorted({row[0] for row in rows})
    for score in scores:
        expected = slow_score(rows, score.respondent)
        assert score.overall.score.value == pytest.approx(expected)
        for dimension, own in score.dimensions.items():
            chosen = [row for row in rows if row[3] == dimension]
            assert own.score.value == pytest.approx(slow_score(chosen, score.respondent))
        for estimate in (score.overall.score, score.overall.pooled):
            if estimate.low is None:
                assert estimate.reason
            else:
                assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
                assert estimate.low < estimate.high
    shuffled = list(rows)
    random.shuffle(shuffled)
    for before, after in zip(scores, respondent_scores(make_verdicts(shuffled)), strict=True):
        assert before.overall.score.value == pytest.approx(after.overall.score.value)
    assert "NaN" not in json.dumps([dataclasses.asdict(score) for score in scores])
