"""Intervals over conversations: which kind, when none, and never outside what they enclose."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.bootstrap import (
    Estimate,
    Quantity,
    bounded,
    clopper_pearson,
    cluster_estimates,
    collect,
    delete_one,
    divide,
    jackknife_error,
    replicate_sums,
    t_quantile,
)

pytestmark = pytest.mark.no_database

SHARE = (Quantity("share", (1,), 0.0, 1.0, "no_units"),)


def share(sums):
    return divide(sums[:, 0], sums[:, 1])[:, None]


def estimate(table, seed=1, **options):
    return cluster_estimates(
        np.asarray(table, dtype=float),
        share,
        SHARE,
        np.random.default_rng(seed),
        best=lambda total: np.array([total[1], total[1]]),
        worst=lambda total: np.array([0.0, total[1]]),
        **options,
    )


def make_table(clusters, seed=0):
    rng = np.random.default_rng(seed)
    units = rng.integers(1, 20, size=clusters)
    return np.stack([rng.binomial(units, rng.beta(6, 2, size=clusters)), units], axis=1)


@pytest.mark.parametrize(
    ("clusters", "method"),
    [(1, None), (4, None), (5, "jackknife"), (49, "jackknife"), (50, "percentile")],
)
def test_the_number_of_conversations_chooses_the_interval(clusters, method):
    result = estimate(make_table(clusters)).estimates["share"]
    assert result.method == method
    assert (result.reason == "too_few_conversations") == (method is None)
    assert (result.low is None) == (method is None)


def test_the_jackknife_of_a_mean_is_the_textbook_t_interval():
    # With one unit per conversation the jackknife error of a mean is sd / sqrt(K) exactly.
    values = np.array([0.2, 0.4, 0.5, 0.6, 0.8, 0.5])
    table = np.stack([values, np.ones(6)], axis=1)
    error = values.std(ddof=1) / math.sqrt(6)
    assert jackknife_error(delete_one(table, share)[:, 0]) == pytest.approx(error)
    result = estimate(table).estimates["share"]
    # t(.975, 5) = 2.570582 (any table of Student's t).
    assert t_quantile(5) == pytest.approx(2.570582, abs=1e-6)
    assert result.low == pytest.approx(0.5 - 2.570582 * error, abs=1e-6)
    assert result.high == pytest.approx(0.5 + 2.570582 * error, abs=1e-6)


def test_the_percentile_interval_has_the_width_of_the_sampling_error():
    table = make_table(400)
    result = estimate(table).estimates["share"]
    normal = 2 * 1.96 * jackknife_error(delete_one(table.astype(float), share)[:, 0])
    assert result.high - result.low == pytest.approx(normal, rel=0.1)


def test_replicates_draw_whole_conversations():
    # Rows are powers of 8, so that every sum tells how often each conversation was drawn.
    table = 8.0 ** np.arange(7)[:, None]
    sums = replicate_sums(table, np.random.default_rng(2), 600)[:, 0].astype(int)
    counts = np.stack([(sums // 8**i) % 8 for i in range(7)], axis=1)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(7), abs=0.15)


def test_the_same_generator_state_gives_the_same_interval_and_another_does_not():
    table = make_table(60)
    assert estimate(table).estimates == estimate(table).estimates
    assert estimate(table).estimates != estimate(table, seed=2).estimates


@pytest.mark.parametrize(("met", "clusters"), [(1.0, 20), (0.0, 20), (1.0, 200), (0.5, 30)])
def test_equal_conversations_do_not_give_a_zero_width_interval(met, clusters):
    table = np.stack([np.full(clusters, met * 4), np.full(clusters, 4.0)], axis=1)
    result = estimate(table).estimates["share"]
    low, high = clopper_pearson(met * clusters, clusters)
    assert result.method == "exact"
    assert (result.value, result.low, result.high) == pytest.approx((met, low, high))
    assert result.low < result.high


def test_clopper_pearson_at_the_ends_has_its_closed_form():
    # 20 of 20: low = (.025)^(1/20) = .8316; 0 of 20 mirrors it.
    assert clopper_pearson(20, 20) == pytest.approx((0.025 ** (1 / 20), 1.0))
    assert clopper_pearson(0, 20) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))


def test_over_five_percent_undefined_replicates_give_the_jackknife_instead():
    # Three of 60 conversations carry a flag and two are needed: every delete-one sample has
    # them, but a Poisson(3) number below two happens in 20 % of replicates.
    table = np.concatenate([make_table(60), np.zeros((60, 1), dtype=int)], axis=1)
    table[:3, 2] = 1
    result = cluster_estimates(
        table.astype(float),
        lambda sums: np.where(sums[:, 2] >= 2, sums[:, 0] / sums[:, 1], np.nan)[:, None],
        SHARE,
        np.random.default_rng(1),
        best=lambda total: total,
        worst=lambda total: total,
    )
    assert result.degenerate("share") == pytest.approx(0.2 * 2000, rel=0.15)
    assert result.estimates["share"].method == "jackknife"


def test_a_statistic_that_hangs_on_one_conversation_has_a_value_but_no_interval():
    # Defined only while the first of 60 conversations is in: 36 % of replicates lack it.
    table = np.ones((60, 2))
    table[0, 0] = 2.0
    result = cluster_estimates(
        table,
        lambda sums: np.where(sums[:, 0] > sums[:, 1], 0.5, np.nan)[:, None],
        SHARE,
        np.random.default_rng(1),
        best=lambda total: total,
        worst=lambda total: total,
    )
    assert result.degenerate("share") == pytest.approx(2000 * (59 / 60) ** 60, rel=0.1)
    assert result.estimates["share"] == Estimate(value=0.5, reason="degenerate_replicates")


def test_conversations_that_do_not_inform_are_not_counted():
    table = np.concatenate([make_table(4), np.zeros((100, 2), dtype=int)])
    assert estimate(table).estimates["share"].reason == "too_few_conversations"


def test_no_conversation_at_all_is_none_with_the_quantitys_reason():
    assert estimate(np.zeros((0, 2))).estimates["share"] == Estimate(value=None, reason="no_units")


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_an_estimate_refuses_what_is_not_a_number(number):
    with pytest.raises(ValueError, match="finite"):
        Estimate(value=number)
    with pytest.raises(ValueError, match="reason"):
        Estimate(value=None)


def test_a_clipped_interval_still_encloses_the_clipped_point():
    # Point and interval beside the range: clipping only the limits would invert it.
    result = bounded(1.462, 1.404, 1.52, 0.0, 1.0, "jackknife")
    assert result.low <= result.value <= result.high == 1.0


def test_collect_sums_columns_by_group_in_ascending_order():
    group = np.array([30, 10, 30, 20])
    sums = collect(group, [np.array([1, 2, 3, 4]), np.array([True, True, False, False])])
    assert sums.tolist() == [[2, 1], [4, 0], [4, 1]]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.integers(0, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=70
    )
)
def test_intervals_enclose_the_point_inside_the_range(rows):
    table = np.array(rows, dtype=float).reshape(-1, 2)
    result = estimate(table, replicates=100).estimates["share"]
    if result.low is None:
        assert result.reason
    else:
        assert 0 <= result.low <= result.value <= result.high <= 1
        assert result.low < result.high
