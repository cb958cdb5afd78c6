"""Agreement against published and independently computed values, and against known faults."""

import dataclasses
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from annotation.agreement import (
    CANNOT_TELL,
    MET,
    MISSING,
    NOT_MET,
    QUANTITIES,
    UnitCounts,
    agreement_panel,
    agreement_statistics,
    agreement_table,
    answer_codes,
    brennan_prediger,
    cohen_kappa,
    cohen_pairs,
    conger_kappa,
    consensus,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mean_kappa,
    pairwise_macro_f1,
    percent_agreement,
    percent_agreement_pooled,
    rating_matrix,
    specific_agreement,
    unit_counts,
    value_counts,
)
from annotation.bootstrap import Estimate, delete_one, jackknife_error

pytestmark = pytest.mark.no_database

ORACLE = json.loads((Path(__file__).parents[1] / "oracles/agreement_oracle.json").read_text())
CASES = {case["name"]: case for case in ORACLE["cases"]}
BINARY = {name: case for name, case in CASES.items() if case["categories"] == [0, 1]}
CLUSTERED = {name: case for name, case in CASES.items() if "cluster_bootstrap" in case}
COLUMN = {quantity.name: j for j, quantity in enumerate(QUANTITIES)}
TOLERANCE = ORACLE["meta"]["tolerance"]

POINTS = {
    "krippendorff_alpha": krippendorff_alpha,
    "percent_agreement": percent_agreement,
    "percent_agreement_pooled_pairs": percent_agreement_pooled,
    "gwet_ac1": gwet_ac1,
    "gwet_ac1_pairable_only": lambda counts: gwet_ac1(counts, pairable_only=True),
    "fleiss_kappa": lambda counts: fleiss_kappa(counts, pairable_only=False),
    "fleiss_kappa_pairable_only": fleiss_kappa,
    "brennan_prediger": brennan_prediger,
    "positive_specific_agreement": lambda counts: specific_agreement(counts, MET),
    "negative_specific_agreement": lambda counts: specific_agreement(counts, NOT_MET),
    "pairwise_macro_f1_human_human": pairwise_macro_f1,
}
OF_CODES = {
    # The oracle's mean is the plain one (Light's kappa).
    "cohen_kappa_mean": lambda codes, q: mean_kappa(cohen_pairs(codes, q), weighted=False),
    "conger_kappa": conger_kappa,
}
PANEL_NAMES = {
    "krippendorff_alpha": "alpha",
    "percent_agreement": "percent_agreement",
    "percent_agreement_pooled_pairs": "percent_agreement_pooled",
    "gwet_ac1": "ac1",
    "gwet_ac1_pairable_only": "ac1_pairable_only",
    "fleiss_kappa": "fleiss_all_rated",
    "fleiss_kappa_pairable_only": "fleiss",
    "brennan_prediger": "brennan_prediger",
    "positive_specific_agreement": "psa",
    "negative_specific_agreement": "nsa",
    "pairwise_macro_f1_human_human": "macro_f1",
    "prevalence_of_1": "prevalence",
}


def codes_of(case):
    return answer_codes(case["raters_x_units"], case.get("categories", [0, 1]))


def make_panel(codes, conversation=None, **options):
    codes = np.asarray(codes)
    if conversation is None:
        conversation = np.arange(codes.shape[1])
    options = {"replicates": 200, "minimum_units": 1, "minimum_conversations": 1, **options}
    return agreement_panel(unit_counts(codes, conversation), np.random.default_rng(7), **options)


def estimates_of(panel):
    values = {f.name: getattr(panel, f.name) for f in dataclasses.fields(panel)}
    return {name: value for name, value in values.items() if isinstance(value, Estimate)}


def assert_matches(estimate, expected):
    if expected is None:
        assert estimate.value is None
        assert estimate.reason
    else:
        assert estimate.value == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_every_coefficient_equals_the_oracle(name):
    case = CASES[name]
    codes, q = codes_of(case), len(case["categories"])
    counts = value_counts(codes, q)
    checked = 0
    for key, value in case["expected"].items():
        if key in POINTS:
            assert_matches(POINTS[key](counts), value)
            checked += 1
        if key in OF_CODES:
            assert_matches(OF_CODES[key](codes, q), value)
            checked += 1
    assert checked >= 8
    assert counts.sum() == case["expected"]["n_ratings"]
    assert counts[counts.sum(axis=1) >= 2].sum() == case["expected"]["n_pairable_values"]


@pytest.mark.parametrize(
    "name", [n for n, c in CASES.items() if "cohen_kappa_pairwise" in c["expected"]]
)
def test_pairwise_kappas_and_their_common_units_equal_the_oracle(name):
    case = CASES[name]
    pairs = cohen_pairs(codes_of(case), len(case["categories"]))
    expected = case["expected"]["cohen_kappa_pairwise"]
    assert {f"{pair.first}-{pair.second}" for pair in pairs} == set(expected)
    for pair in pairs:
        key = f"{pair.first}-{pair.second}"
        assert_matches(pair.kappa, expected[key])
        assert pair.units == case["expected"]["cohen_kappa_pairwise_n"][key]


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.get("published")])
def test_published_values_are_reproduced_to_their_digits(name):
    case = CASES[name]
    codes, q = codes_of(case), len(case["categories"])
    checked = 0
    for key, (value, digits) in case["published"].items():
        if key in POINTS:
            estimate = POINTS[key](value_counts(codes, q))
        elif key in OF_CODES:
            estimate = OF_CODES[key](codes, q)
        else:
            estimate = cohen_pairs(codes, q)[0].kappa
        assert estimate.value == pytest.approx(value, abs=0.5000001 * 10**-digits)
        checked += 1
    assert checked


@pytest.mark.parametrize("name", BINARY)
def test_the_panel_equals_the_oracle(name):
    case = BINARY[name]
    panel, expected = make_panel(codes_of(case)), case["expected"]
    for key, field in PANEL_NAMES.items():
        if key in expected:
            assert_matches(getattr(panel, field), expected[key])
    assert panel.n_units == expected["n_units_rated"]
    assert panel.n_pairable == expected["n_units_pairable"]
    assert panel.n_ratings == expected["n_ratings"]
    assert panel.n_pairable_ratings == expected["n_pairable_values"]


@pytest.mark.parametrize("case", ORACLE["edge_cases"], ids=lambda case: case["name"])
def test_edge_cases_are_a_number_or_none_with_a_reason(case):
    codes = codes_of(case)
    counts = value_counts(codes) if codes.size else np.zeros((0, 2), dtype=np.int64)
    panel = agreement_panel(
        unit_counts(codes, np.zeros(codes.shape[1], dtype=int)),
        np.random.default_rng(1),
        minimum_units=1,
        minimum_conversations=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for key, value in case["expected"].items():
            if key == "ci":
                assert panel.alpha.low is None
                assert panel.alpha.high is None
            elif key in OF_CODES:
                assert_matches(OF_CODES[key](codes, 2), value)
            elif key == "fleiss_kappa":
                assert_matches(POINTS[key](counts), value)
                assert_matches(panel.fleiss_all_rated, value)
            else:
                assert_matches(POINTS[key](counts), value)
                assert_matches(getattr(panel, PANEL_NAMES[key]), value)
    for reason in ("no_pairable_units", "no_variation"):
        if case["reason"].startswith(reason) and case["expected"]["krippendorff_alpha"] is None:
            assert panel.alpha.reason == reason


@pytest.mark.parametrize("name", CLUSTERED)
def test_replicates_and_jackknife_equal_the_oracle(name):
    case = CLUSTERED[name]
    expected = case["cluster_bootstrap"]
    table = agreement_table(unit_counts(codes_of(case), np.array(expected["cluster_ids"])))
    for replicate in expected["replicates"]:
        sums = np.array([replicate["cluster_counts"]], dtype=float) @ table
        values = agreement_statistics(sums)[0]
        for key in ("krippendorff_alpha", "gwet_ac1", "fleiss_kappa"):
            value = values[COLUMN[PANEL_NAMES[key]]]
            assert (None if math.isnan(value) else value) == pytest.approx(
                replicate[key], abs=TOLERANCE
            )
    left_out = delete_one(table, agreement_statistics)[:, COLUMN["alpha"]]
    assert left_out == pytest.approx(expected["delete_one_cluster_alpha"], abs=TOLERANCE)
    assert jackknife_error(left_out) == pytest.approx(
        expected["jackknife_cluster_se_alpha"], abs=TOLERANCE
    )


@pytest.mark.parametrize("case", ORACLE["consensus_cases"], ids=lambda case: case["name"])
def test_consensus_equals_the_oracles_majority_and_its_ties(case):
    counts = value_counts(codes_of(case))
    ties = 0
    for (zeros, ones), majority in zip(counts, case["expected"]["majority"], strict=True):
        ties += bool(ones == zeros and ones)
        agreed = consensus(int(ones), int(zeros), 0, overlap=3).met
        # A unit with a single answer has a majority, but no consensus at an overlap above 1.
        expected = majority if ones + zeros >= 2 else None
        assert agreed == (None if expected is None else bool(expected))
    assert ties == case["expected"]["n_ties"]


@pytest.mark.parametrize(
    ("answers", "overlap", "met", "provenance"),
    [
        ((3, 0, 0), 3, True, "unanimous"),
        ((0, 2, 0), 2, False, "unanimous"),
        ((2, 1, 0), 3, True, "majority"),
        ((2, 0, 1), 3, True, "majority"),
        ((1, 1, 0), 2, None, "none"),
        ((2, 1, 1), 4, None, "none"),  # two of four is not more than half
        ((1, 0, 1), 2, None, "none"),
        ((1, 0, 0), 2, None, "none"),  # the second answer is not in yet
        ((0, 1, 0), 1, False, "single"),
        ((0, 0, 1), 1, None, "none"),
        ((0, 0, 0), 1, None, "none"),
        ((1, 1, 0), 1, None, "none"),
        ((2, 0, 2), 4, None, "none"),
        ((2, 0, 0), 1, True, "unanimous"),  # another round asked a second person
    ],
)
def test_consensus_needs_more_than_half_of_all_answers(answers, overlap, met, provenance):
    result = consensus(*answers, overlap=overlap)
    assert (result.met, result.provenance) == (met, provenance)


def test_a_tie_is_none_whatever_the_order_of_the_answers():
    for first, second in ((MET, NOT_MET), (NOT_MET, MET)):
        matrix = rating_matrix([1, 1], [5, 5], [10, 11], [first, second])
        zeros, ones = value_counts(matrix.codes)[0]
        assert consensus(int(ones), int(zeros), 0, overlap=2).met is None


# Faults of other packages (STATISTICS section 5)


def test_kappa_of_one_class_is_none_with_a_reason():
    result = cohen_kappa(np.array([1, 1]), np.array([1, 1]))
    assert (result.value, result.reason) == (None, "no_variation")
    assert "NaN" not in json.dumps(dataclasses.asdict(make_panel([[1, 1], [1, 1]])))


def test_kappa_of_300000_pairs_of_small_integers_does_not_overflow():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, size=(2, 300_000), dtype=np.int8)
    assert abs(cohen_kappa(a, b).value) < 0.02
    assert abs(make_panel(np.stack([a, b]), np.arange(300_000) % 60).alpha.value) < 0.02


def test_one_category_gives_no_fleiss_but_full_ac1_and_brennan_prediger():
    panel = make_panel(np.ones((3, 12), dtype=int))
    assert (panel.fleiss.value, panel.fleiss.reason) == (None, "no_variation")
    assert panel.ac1.value == panel.brennan_prediger.value == 1.0
    assert (panel.nsa.value, panel.nsa.reason) == (None, "no_not_met_answers")


def test_units_may_have_unequal_numbers_of_answers():
    # Pairs agreeing: unit 1 has 3 of 3, unit 2 has 0 of 1, unit 3 has 1 of 3.
    panel = make_panel([[1, 1, 1], [1, 0, 0], [1, MISSING, 0]])
    assert panel.percent_agreement.value == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert panel.fleiss.value is not None


def test_missing_is_not_a_category():
    panel = make_panel([[1, 1, 0], [1, 1, MISSING], [CANNOT_TELL, 1, 0]])
    assert panel.alpha.value == 1.0
    assert panel.n_cannot_tell == 1
    assert panel.cannot_tell_rate == pytest.approx(1 / 8)


def test_a_second_label_on_single_answer_units_only_is_no_variation():
    panel = make_panel([[1, 1, MISSING], [1, 1, 0]])
    assert (panel.alpha.value, panel.alpha.reason) == (None, "no_variation")


@pytest.mark.parametrize("codes", [[[1, 0, 1, 1]], [[MISSING] * 3] * 2])
def test_one_rater_or_no_answers_is_none_without_a_warning(codes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel = make_panel(codes)
        assert krippendorff_alpha(value_counts(np.array(codes))).reason == "no_pairable_units"
    assert {e.reason for n, e in estimates_of(panel).items() if n != "prevalence"} == {
        "no_pairable_units"
    }


def test_alpha_is_exactly_zero_at_92_percent_agreement_and_the_rest_stands_beside_it():
    # Eleven units agree on met, one is split: N0 = 1, so o01 (n-1) = N1 N0 and alpha = 0.
    panel = make_panel([[1] * 12, [1] * 11 + [0]])
    assert panel.alpha.value == pytest.approx(0.0, abs=1e-15)
    assert panel.percent_agreement.value == pytest.approx(11 / 12)
    # pi = 23/24, pe = 2 pi (1 - pi) = 46/576: AC1 = (11/12 - 46/576) / (530/576)
    assert panel.ac1.value == pytest.approx((528 - 46) / 530)
    assert panel.nsa.value == 0.0


def test_negative_alpha_is_not_clipped():
    # [[A,B],[B,A]]: o01 = 2, n = 4, N1 = N0 = 2, so 1 - 3*2/4 = -0.5.
    assert make_panel([[1, 0], [0, 1]]).alpha.value == pytest.approx(-0.5)


def test_krippendorffs_example_c_is_904_of_1216():
    case = CASES["krippendorff_2011_C_nominal_4obs_missing"]
    alpha = krippendorff_alpha(value_counts(codes_of(case), 5))
    assert alpha.value == pytest.approx(904 / 1216, abs=1e-12)


def test_full_agreement_on_two_classes_is_one_and_on_one_class_none():
    assert make_panel([[1, 0, 1], [1, 0, 1]]).alpha.value == 1.0
    assert make_panel([[1, 1, 1], [1, 1, 1]]).alpha.value is None


def test_the_unit_is_reply_and_criterion_whatever_the_keys_are_called():
    reply, criterion, annotator = [1, 2, 1, 2], [7, 7, 7, 7], [4, 4, 9, 9]
    answers = [MET, NOT_MET, MET, NOT_MET]
    matrix = rating_matrix(reply, criterion, annotator, answers)
    assert matrix.units.tolist() == [[1, 7], [2, 7]]
    assert krippendorff_alpha(value_counts(matrix.codes)).value == 1.0
    renamed = rating_matrix([50, 3, 50, 3], [8] * 4, [1, 1, 0, 0], answers)
    assert krippendorff_alpha(value_counts(renamed.codes)).value == 1.0


def test_two_answers_of_one_annotator_to_one_unit_are_refused():
    with pytest.raises(ValueError, match="two answers"):
        rating_matrix([1, 1], [1, 1], [1, 1], [MET, NOT_MET])


def test_two_absent_answers_are_not_an_agreement():
    absent = make_panel([[1, 0, MISSING, MISSING], [1, 1, MISSING, MISSING]])
    assert absent == make_panel([[1, 0], [1, 1]])
    assert absent.percent_agreement.value == 0.5


def test_pairwise_kappa_is_symmetric():
    a, b = np.array([1, 0, 1, 1, 0, MISSING]), np.array([1, 0, 0, 1, 1, 1])
    assert cohen_kappa(a, b) == cohen_kappa(b, a)


def test_the_mean_kappa_is_weighted_by_common_units():
    pairs = cohen_pairs(np.array([[1, 0, 1, 0, 1], [1, 0, 1, 0, 0], [0, 1, -1, -1, -1]]))
    values = [(pair.kappa.value, pair.units) for pair in pairs]
    assert [units for _, units in values] == [5, 2, 2]
    assert mean_kappa(pairs).value == pytest.approx(sum(v * n for v, n in values) / 9)


# The panel's own rules


def test_coefficients_are_withheld_below_ten_units_and_counts_stay():
    codes = np.array([[1, 0, 1, 1, 0, 1, 1, 0, 1]] * 2)
    options = {"minimum_units": 10, "minimum_conversations": 5}
    panel = make_panel(codes, **options)
    assert panel.alpha.reason == panel.percent_agreement.reason == "too_few_units"
    assert (panel.n_pairable, panel.n_ratings, panel.prevalence.value) == (9, 18, 6 / 9)
    assert panel.p_alpha_below_667 is None


def test_coefficients_are_withheld_below_five_conversations():
    codes = np.array([[1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0]] * 2)
    panel = make_panel(codes, np.arange(12) % 4, minimum_units=10, minimum_conversations=5)
    assert panel.alpha.reason == "too_few_conversations"
    assert panel.n_conversations == 4


def test_full_agreement_has_an_interval_of_some_width():
    codes = np.array([[1, 0] * 30] * 3)
    panel = make_panel(codes, np.arange(60) // 2, minimum_units=10, minimum_conversations=5)
    for estimate in (panel.alpha, panel.ac1, panel.psa, panel.nsa, panel.percent_agreement):
        assert estimate.value == estimate.high == 1.0
        assert estimate.low < 0.95
        assert estimate.method == "exact"
    # Clopper-Pearson with 30 of 30: lower limit .025^(1/30).
    assert panel.percent_agreement.low == pytest.approx(0.025 ** (1 / 30))


def test_the_same_seed_gives_the_same_panel():
    case = CLUSTERED["synthetic_05_R3_N100_prev0.97_miss0.25"]
    conversation = np.arange(100) % 60
    first, second = (make_panel(codes_of(case), conversation) for _ in range(2))
    assert first == second
    assert first.method == "percentile"
    assert first.replicates == 200


def test_a_subset_of_units_gives_the_panel_of_that_subset():
    codes = codes_of(CLUSTERED["synthetic_04_R6_N30_prev0.5_miss0.2"])
    units = unit_counts(codes, np.arange(30) % 6)
    chosen = np.arange(30) < 20
    direct = unit_counts(codes[:, :20], np.arange(20) % 6)
    panels = [
        agreement_panel(u, np.random.default_rng(5), replicates=50)
        for u in (units.where(chosen), direct)
    ]
    assert panels[0] == panels[1]


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="different lengths"):
        UnitCounts(conversation=np.zeros(2, int), met=np.zeros(3, int), not_met=np.zeros(3, int))


# Properties

matrices = st.tuples(st.integers(1, 5), st.integers(1, 40)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(-2, 1))
)


@settings(deadline=None, max_examples=60)
@given(matrices, st.integers(1, 12))
def test_every_estimate_is_finite_or_has_a_reason_and_encloses_its_value(codes, conversations):
    panel = make_panel(codes, np.arange(codes.shape[1]) % conversations, replicates=60)
    for name, estimate in estimates_of(panel).items():
        if estimate.value is None:
            assert estimate.reason
            assert estimate.low is estimate.high is None
        else:
            quantity = QUANTITIES[COLUMN[name]]
            assert quantity.low - 1e-12 <= estimate.value <= quantity.high + 1e-12
            assert (estimate.low is None) == (estimate.high is None)
            if estimate.low is None:
                assert estimate.reason
            else:
                assert estimate.low <= estimate.value <= estimate.high
                assert quantity.low <= estimate.low < estimate.high <= quantity.high
    assert "NaN" not in json.dumps(dataclasses.asdict(panel))


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_the_identity_replicate_equals_the_package_and_the_point_functions(codes):
    counts = value_counts(codes)
    conversation = np.arange(codes.shape[1]) % 5
    table = agreement_table(unit_counts(codes, conversation))
    values = agreement_statistics(np.ones((1, len(table))) @ table)[0]
    for key, field in PANEL_NAMES.items():
        if key not in POINTS:
            continue
        point, replicate = POINTS[key](counts).value, values[COLUMN[field]]
        if point is None:
            assert math.isnan(replicate)
        else:
            assert replicate == pytest.approx(point, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(matrices, st.randoms(use_true_random=False))
def test_the_order_of_raters_and_units_changes_nothing(codes, random):
    raters, units = list(range(codes.shape[0])), list(range(codes.shape[1]))
    random.shuffle(raters)
    random.shuffle(units)
    shuffled = codes[raters][:, units]
    before, after = value_counts(codes), value_counts(shuffled)
    for point in POINTS.values():
        assert point(before).value == pytest.approx(point(after).value, abs=1e-12)
    for point in OF_CODES.values():
        assert point(codes, 2).value == pytest.approx(point(shuffled, 2).value, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(matrices, st.integers(0, 1))
def test_a_unit_with_one_answer_does_not_change_alpha(codes, answer):
    single = np.full((codes.shape[0], 1), MISSING, dtype=np.int8)
    single[0] = answer
    longer = np.concatenate([codes, single], axis=1)
    assert krippendorff_alpha(value_counts(longer)) == krippendorff_alpha(value_counts(codes))
