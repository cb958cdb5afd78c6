"""A judge against clinicians: oracle values, undefined cases, intervals."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score

from annotation.agreement import MISSING, answer_codes, consensus, value_counts
from annotation.bootstrap import Estimate, clopper_pearson
from scoring.calibration import (
    QUANTITIES,
    confusion_statistics,
    judge_panel,
    judge_standing,
    pairwise_score,
    probability_report,
)

pytestmark = pytest.mark.no_database

ORACLE = json.loads((Path(__file__).parents[1] / "oracles/calibration_oracle.json").read_text())
TOLERANCE = ORACLE["meta"]["tolerance"]
JUDGED = [case for case in ORACLE["cases"] if case["kind"] == "judge_metrics"]
PROBABILITIES = [case for case in ORACLE["cases"] if case["kind"] == "probability_calibration"]


def majority_of(codes):
    """Strict majority with single answers allowed, as the oracle has it."""
    counts = value_counts(codes)
    ones, zeros = counts[:, 1], counts[:, 0]
    return np.where(ones > zeros, 1, np.where(zeros > ones, 0, MISSING))


def make_panel(judge, truth, conversation=None, **options):
    judge, truth = np.asarray(judge), np.asarray(truth)
    if conversation is None:
        conversation = np.arange(len(judge))
    rng = np.random.default_rng(4)
    return judge_panel(np.asarray(conversation), judge, truth, rng, replicates=300, **options)


def make_judged(conversations, per_conversation, seed=0, sensitivity=0.9, specificity=0.7):
    rng = np.random.default_rng(seed)
    conversation = np.repeat(np.arange(conversations), per_conversation)
    truth = (rng.random(len(conversation)) < 0.7).astype(int)
    right = rng.random(len(conversation)) < np.where(truth == 1, sensitivity, specificity)
    return np.where(right, truth, 1 - truth), truth, conversation


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case["name"])
def test_metrics_against_the_majority_equal_the_oracle(case):
    codes = answer_codes(case["inputs"]["humans_raters_x_units"], [0, 1])
    expected = case["expected"]
    majority = majority_of(codes)
    assert [None if m < 0 else m for m in majority.tolist()] == expected["majority"]
    panel = make_panel(case["inputs"]["judge"], majority)
    assert (panel.tp, panel.fp, panel.fn, panel.tn) == tuple(
        expected[key] for key in ("tp", "fp", "fn", "tn")
    )
    assert panel.n_units == expected["n_units"]
    names = {"macro_f1_vs_majority": "macro_f1"}
    for key in (
        "sensitivity",
        "specificity",
        "precision",
        "npv",
        "balanced_accuracy",
        "macro_f1_vs_majority",
        "mcc",
    ):
        value = getattr(panel, names.get(key, key)).value
        assert value == pytest.approx(expected[key], abs=TOLERANCE)
    assert panel.youden_j.value == pytest.approx(
        expected["sensitivity"] + expected["specificity"] - 1, abs=TOLERANCE
    )
    exact = clopper_pearson(panel.tp, panel.tp + panel.fn)
    assert exact == pytest.approx(expected["sensitivity_clopper_pearson95"], abs=TOLERANCE)


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case["name"])
def test_the_pairwise_metric_equals_the_oracle(case):
    codes = answer_codes(case["inputs"]["humans_raters_x_units"], [0, 1])
    judge, expected = np.array(case["inputs"]["judge"]), case["expected"]
    conversation = np.arange(len(judge)) // 4
    score = pairwise_score(conversation, judge, codes, np.random.default_rng(1))
    prefix = "healthbench_pairwise_"
    assert score.f1_met.value == pytest.approx(expected[prefix + "f1_pos"], abs=TOLERANCE)
    assert score.f1_not_met.value == pytest.approx(expected[prefix + "f1_neg"], abs=TOLERANCE)
    assert score.macro_f1.value == pytest.approx(expected[prefix + "macro_f1"], abs=TOLERANCE)
    assert score.macro_f1.low <= score.macro_f1.value <= score.macro_f1.high


def test_the_judge_stands_among_clinicians_scored_the_same_way():
    case = JUDGED[1]
    codes = answer_codes(case["inputs"]["humans_raters_x_units"], [0, 1])
    judge = np.array(case["inputs"]["judge"])
    standing = judge_standing(np.arange(80) // 8, judge, codes, np.random.default_rng(2))

    def flattened(rater, others):
        pairs = [
            (answer, rater[u])
            for row in others
            for u, answer in enumerate(row)
            if answer >= 0 and rater[u] >= 0
        ]
        return f1_score(*zip(*pairs, strict=True), average="macro")

    for i, clinician in enumerate(standing.clinicians):
        others = np.delete(codes, i, axis=0)
        assert clinician.macro_f1.value == pytest.approx(flattened(codes[i], others))
        assert standing.against_each[i].macro_f1.value == pytest.approx(
            flattened(judge, codes[i : i + 1])
        )
    higher = [c for c in standing.clinicians if c.macro_f1.value > standing.judge.macro_f1.value]
    assert standing.place == 1 + len(higher)


def test_the_unit_weighted_metric_gives_each_unit_the_same_say():
    # Unit 0: judge right against three clinicians; unit 1: wrong against one; unit 2: right.
    codes = np.array([[1, 0, 0], [1, -1, -1], [1, -1, -1]])
    score = pairwise_score(np.arange(3), np.array([1, 1, 0]), codes, np.random.default_rng(1))
    assert score.macro_f1.value == pytest.approx((6 / 7 + 2 / 3) / 2)
    assert score.macro_f1_by_unit.value == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert (score.n_pairs, score.n_units) == (5, 3)


def test_a_perfect_judge_of_one_class_has_no_specificity_and_no_mcc():
    panel = make_panel([1] * 12, [1] * 12)
    assert panel.sensitivity.value == panel.accuracy.value == 1.0
    assert panel.specificity == Estimate(value=None, reason="no_not_met_units")
    assert panel.mcc.value is None
    for one_class in (panel.youden_j, panel.balanced_accuracy, panel.macro_f1):
        assert (one_class.value, one_class.reason) == (None, "one_class_only")
    assert panel.npv.reason == "judge_never_not_met"


def test_a_constant_judge_has_no_mcc_and_stands_on_the_constant_line():
    panel = make_panel([1] * 20, [1] * 15 + [0] * 5)
    assert (panel.mcc.value, panel.mcc.reason) == (None, "no_variation")
    assert panel.constant.met is True
    assert panel.accuracy.value == panel.constant.accuracy == 0.75
    # F1 of met is 2*15/(2*15+5) = 6/7, of not met 0.
    assert panel.constant.macro_f1 == pytest.approx(3 / 7)
    assert panel.macro_f1.value == pytest.approx(3 / 7)


def test_units_without_consensus_or_verdict_are_counted_and_not_held_against_the_judge():
    panel = make_panel([1, 1, MISSING, 0, 1], [1, MISSING, 1, 0, MISSING])
    assert (panel.n_units, panel.n_without_consensus, panel.n_unjudged) == (2, 2, 1)
    assert panel.accuracy.value == 1.0


def test_no_unit_is_none_with_a_reason_everywhere():
    panel = make_panel([], [])
    assert panel.constant is None
    for quantity in QUANTITIES:
        assert getattr(panel, quantity.name).value is None
        assert getattr(panel, quantity.name).reason == quantity.undefined


def test_a_perfect_judge_has_intervals_of_some_width():
    truth = np.tile([1, 1, 0], 20)
    panel = make_panel(truth, truth, np.repeat(np.arange(20), 3))
    # Clopper-Pearson with 20 of 20 conversations: low = .025^(1/20).
    low = 0.025 ** (1 / 20)
    assert panel.sensitivity.low == panel.specificity.low == pytest.approx(low)
    assert panel.youden_j.low == pytest.approx(2 * low - 1)
    assert 0 < panel.mcc.low < panel.mcc.value == panel.mcc.high == pytest.approx(1.0)


def test_intervals_widen_when_the_conversations_are_fewer():
    # The same judge with ten times fewer conversations: about sqrt(10) wider.
    wide, narrow = (
        make_panel(*make_judged(k, 20, sensitivity=0.85, specificity=0.75)) for k in (60, 600)
    )
    for name in ("sensitivity", "specificity", "youden_j"):
        small, large = getattr(wide, name), getattr(narrow, name)
        assert small.high - small.low > 2 * (large.high - large.low)


def test_sensitivity_counts_only_conversations_with_a_met_unit():
    # 30 conversations, but only four have a met unit: too few for an interval.
    truth = np.array([1] * 4 + [0] * 26)
    panel = make_panel(truth, truth)
    assert panel.sensitivity == Estimate(value=1.0, reason="too_few_conversations")
    assert panel.specificity.low is not None


def test_the_consensus_that_is_used_is_the_products():
    agreed = [consensus(2, 0, 1, 3), consensus(1, 1, 0, 2), consensus(0, 3, 0, 3)]
    truth = [MISSING if c.met is None else int(c.met) for c in agreed]
    panel = make_panel([1, 1, 1], truth)
    assert (panel.tp, panel.fp, panel.n_without_consensus) == (1, 1, 1)


def test_the_identity_replicate_equals_the_point():
    judge, truth, conversation = make_judged(60, 7)
    panel = make_panel(judge, truth, conversation)
    sums = np.array([[panel.tp, panel.fp, panel.fn, panel.tn, truth.sum(), (1 - truth).sum()]])
    for quantity, value in zip(
        QUANTITIES, confusion_statistics(sums.astype(float))[0], strict=True
    ):
        assert getattr(panel, quantity.name).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("case", PROBABILITIES, ids=lambda case: case["name"])
def test_probability_scores_equal_the_oracle(case):
    report = probability_report(case["inputs"]["p"], case["inputs"]["y"], case["inputs"]["bins"])
    expected = case["expected"]
    for estimate, key in (
        (report.brier, "brier"),
        (report.brier_of_base_rate, "brier_of_base_rate"),
        (report.expected_calibration_error, "ece_10_equal_width"),
        (report.maximum_calibration_error, "mce_10_equal_width"),
    ):
        assert estimate.value == pytest.approx(expected[key], abs=TOLERANCE)
    assert sum(b.count for b in report.bins) == len(case["inputs"]["p"])


def test_a_probability_of_one_falls_in_the_last_bin():
    # One bin holds both: |.975 - .5| = .475.
    report = probability_report([0.95, 1.0], [1, 0])
    assert report.expected_calibration_error.value == pytest.approx(0.475)
    assert [b.count for b in report.bins] == [0] * 9 + [2]
    assert report.bins[0].mean_probability is None


def test_no_probability_is_none_with_a_reason():
    assert probability_report([], []).brier.reason == "no_units"


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 50).flatmap(
        lambda n: st.tuples(
            arrays(np.int8, n, elements=st.integers(-1, 1)),
            arrays(np.int8, n, elements=st.integers(-1, 1)),
            arrays(np.int64, n, elements=st.integers(0, 60)),
        )
    )
)
def test_every_metric_is_finite_or_has_a_reason_and_encloses_its_value(columns):
    judge, truth, conversation = columns
    panel = make_panel(judge, truth, conversation)
    for quantity in QUANTITIES:
        estimate = getattr(panel, quantity.name)
        if estimate.low is None:
            assert estimate.reason
        else:
            assert quantity.low <= estimate.low <= estimate.value <= estimate.high <= quantity.high
            assert estimate.low < estimate.high
    assert "NaN" not in json.dumps(dataclasses.asdict(panel))
