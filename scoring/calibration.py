"""What a judge's verdicts are worth, measured against clinicians' answers.

Against the consensus: sensitivity, specificity and what follows from the confusion. Against each
clinician: HealthBench's pairwise macro-F1, beside the same number for each clinician against the
others. Intervals resample whole conversations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement import MET, NOT_MET, IntArray
from annotation.bootstrap import (
    REPLICATES,
    Estimate,
    FloatArray,
    Quantity,
    cluster_estimates,
    collect,
    divide,
)

# Columns of the table of a judge against the consensus.
TP, FP, FN, TN, POSITIVE, NEGATIVE = range(6)

QUANTITIES = (
    Quantity("sensitivity", (POSITIVE,), 0.0, 1.0, "no_met_units"),
    Quantity("specificity", (NEGATIVE,), 0.0, 1.0, "no_not_met_units"),
    Quantity("youden_j", (POSITIVE, NEGATIVE), -1.0, 1.0, "one_class_only"),
    Quantity("precision", (TP, FP), 0.0, 1.0, "judge_never_met"),
    Quantity("npv", (TN, FN), 0.0, 1.0, "judge_never_not_met"),
    Quantity("balanced_accuracy", (POSITIVE, NEGATIVE), 0.0, 1.0, "one_class_only"),
    Quantity("mcc", (POSITIVE, NEGATIVE), -1.0, 1.0, "no_variation"),
    Quantity("macro_f1", (POSITIVE, NEGATIVE), 0.0, 1.0, "one_class_only"),
    Quantity("accuracy", (POSITIVE, NEGATIVE), 0.0, 1.0, "no_units"),
    Quantity("prevalence", (POSITIVE, NEGATIVE), 0.0, 1.0, "no_units"),
)


@dataclass(frozen=True, slots=True)
class ConstantAnswer:
    """The line of a judge that always gives the consensus's more frequent answer."""

    met: bool
    accuracy: float
    macro_f1: float | None


@dataclass(frozen=True, slots=True)
class JudgePanel:
    """A judge against the consensus; `n_*` count units and conversations.

    `n_without_consensus` and `n_unjudged` units are excluded, never counted as disagreement.
    """

    sensitivity: Estimate
    specificity: Estimate
    youden_j: Estimate
    precision: Estimate
    npv: Estimate
    balanced_accuracy: Estimate
    mcc: Estimate
    macro_f1: Estimate
    accuracy: Estimate
    prevalence: Estimate
    constant: ConstantAnswer | None
    tp: int
    fp: int
    fn: int
    tn: int
    n_units: int
    n_conversations: int
    n_without_consensus: int
    n_unjudged: int


def confusion_statistics(sums: FloatArray) -> FloatArray:
    """Return the metrics in the order of QUANTITIES; shapes (B, 6) -> (B, 10), NaN undefined."""
    tp, fp, fn, tn, positive, negative = sums.T
    sensitivity, specificity = divide(tp, tp + fn), divide(tn, tn + fp)
    f1_met, f1_not = divide(2 * tp, 2 * tp + fp + fn), divide(2 * tn, 2 * tn + fp + fn)
    both = np.where((tp + fn > 0) & (tn + fp > 0), 1.0, np.nan)
    margins = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return np.stack(
        [
            sensitivity,
            specificity,
            sensitivity + specificity - 1,
            divide(tp, tp + fp),
            divide(tn, tn + fn),
            (sensitivity + specificity) / 2,
            divide(tp * tn - fp * fn, margins),
            both * (f1_met + f1_not) / 2,
            divide(tp + tn, tp + fp + fn + tn),
            divide(positive, positive + negative),
        ],
        axis=1,
    )


def _all_right(total: FloatArray) -> FloatArray:
    tp, fp, fn, tn, positive, negative = total
    return np.array([tp + fn, 0.0, 0.0, tn + fp, positive + negative, 0.0])


def _all_wrong(total: FloatArray) -> FloatArray:
    tp, fp, fn, tn, positive, negative = total
    return np.array([0.0, tn + fp, tp + fn, 0.0, 0.0, positive + negative])


def judge_panel(
    conversation: IntArray,
    judge: IntArray,
    consensus: IntArray,
    rng: np.random.Generator,
    *,
    replicates: int = REPLICATES,
) -> JudgePanel:
    """Compare verdicts with the consensus.

    Shapes: three arrays (units,); verdict and consensus are 1 met, 0 not met, negative missing.
    Undefined: a metric whose class is absent is None with a reason, never 0 or 1.
    """
    agreed, judged = consensus >= 0, judge >= 0
    used = agreed & judged
    verdict, truth = judge[used] == MET, consensus[used] == MET
    columns = [
        verdict & truth,
        verdict & ~truth,
        ~verdict & truth,
        ~verdict & ~truth,
        truth,
        ~truth,
    ]
    table = collect(conversation[used], columns).reshape(-1, 6)
    result = cluster_estimates(
        table,
        confusion_statistics,
        QUANTITIES,
        rng,
        best=_all_right,
        worst=_all_wrong,
        replicates=replicates,
    )
    tp, fp, fn, tn = (int(count) for count in table.sum(axis=0)[:4])
    return JudgePanel(
        **result.estimates,
        constant=_constant_answer(tp + fn, tn + fp),
        tp=tp,
        fp=fp,
        fn=fn,
        tn=tn,
        n_units=tp + fp + fn + tn,
        n_conversations=len(table),
        n_without_consensus=int((~agreed & judged).sum()),
        n_unjudged=int((agreed & ~judged).sum()),
    )


def _constant_answer(met: int, not_met: int) -> ConstantAnswer | None:
    total, larger = met + not_met, max(met, not_met)
    if total == 0:
        return None
    # F1 of the answered class is 2L / (2L + rest), of the other class 0.
    macro_f1 = larger / (total + larger) if larger < total else None
    return ConstantAnswer(met=met >= not_met, accuracy=larger / total, macro_f1=macro_f1)


# Judge beside clinicians, pair by pair

# Columns: the confusion counts of ordered pairs, and the same with each unit weighing 1.
PAIR_QUANTITIES = (
    Quantity("f1_met", (0, 1, 2), 0.0, 1.0, "no_met_answers"),
    Quantity("f1_not_met", (1, 2, 3), 0.0, 1.0, "no_not_met_answers"),
    Quantity("macro_f1", (0, 1, 2, 3), 0.0, 1.0, "no_variation"),
    Quantity("macro_f1_by_unit", (0, 1, 2, 3), 0.0, 1.0, "no_variation"),
)


@dataclass(frozen=True, slots=True)
class PairwiseScore:
    """Macro-F1 of one rater against others; every (rater, other) pair on a unit counts once.

    `macro_f1_by_unit` gives each unit the same weight instead of one per other answer.
    """

    f1_met: Estimate
    f1_not_met: Estimate
    macro_f1: Estimate
    macro_f1_by_unit: Estimate
    n_pairs: int
    n_units: int
    n_conversations: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The judge against all clinicians, against each, and each clinician against the others.

    `place` is 1 + the number of clinicians whose macro-F1 is higher; None without a macro-F1.
    """

    judge: PairwiseScore
    against_each: tuple[PairwiseScore, ...]
    clinicians: tuple[PairwiseScore, ...]
    place: int | None


def pair_statistics(sums: FloatArray) -> FloatArray:
    """Return F1 met, F1 not met, macro-F1 and its unit-weighted form; shapes (B, 8) -> (B, 4)."""
    scores = []
    for tp, fp, fn, tn in (sums.T[:4], sums.T[4:]):
        f1_met, f1_not = divide(2 * tp, 2 * tp + fp + fn), divide(2 * tn, 2 * tn + fp + fn)
        scores += [f1_met, f1_not, (f1_met + f1_not) / 2]
    return np.stack([scores[0], scores[1], scores[2], scores[5]], axis=1)


def _pairs_right(total: FloatArray) -> FloatArray:
    parts = [_all_right(np.append(part, [0.0, 0.0]))[:4] for part in (total[:4], total[4:])]
    return np.concatenate(parts)


def _pairs_wrong(total: FloatArray) -> FloatArray:
    parts = [_all_wrong(np.append(part, [0.0, 0.0]))[:4] for part in (total[:4], total[4:])]
    return np.concatenate(parts)


def pairwise_score(
    conversation: IntArray,
    rater: IntArray,
    others: IntArray,
    rng: np.random.Generator,
    *,
    replicates: int = REPLICATES,
) -> PairwiseScore:
    """Return the pairwise F1 of one rater against others.

    Shapes: conversation (units,), rater (units,) codes, others (raters, units) codes, negative
    missing. Range: 0..1. Undefined: a class that neither side gave. Source: openai/simple-evals,
    healthbench_meta_eval.py.
    """
    met, not_met = (others == MET).sum(axis=0), (others == NOT_MET).sum(axis=0)
    used = (rater >= 0) & (met + not_met > 0)
    says, ones, zeros = (rater[used] == MET), met[used], not_met[used]
    cells = np.stack([says * ones, says * zeros, ~says * ones, ~says * zeros], axis=1)
    cells = cells.astype(np.float64)
    by_unit = cells / np.maximum(ones + zeros, 1)[:, None]
    table = collect(conversation[used], [*cells.T, *by_unit.T]).reshape(-1, 8)
    result = cluster_estimates(
        table,
        pair_statistics,
        PAIR_QUANTITIES,
        rng,
        best=_pairs_right,
        worst=_pairs_wrong,
        replicates=replicates,
    )
    return PairwiseScore(
        **result.estimates,
        n_pairs=int(cells.sum()),
        n_units=len(cells),
        n_conversations=len(table),
    )


def judge_standing(
    conversation: IntArray,
    judge: IntArray,
    clinicians: IntArray,
    rng: np.random.Generator,
    *,
    replicates: int = REPLICATES,
) -> Standing:
    """Place the judge among the clinicians.

    Shapes: conversation and judge (units,), clinicians (raters, units) codes, negative missing.
    """

    def score(rater: IntArray, others: IntArray) -> PairwiseScore:
        return pairwise_score(conversation, rater, others, rng, replicates=replicates)

    overall = score(judge, clinicians)
    against_each = tuple(score(judge, row[None, :]) for row in clinicians)
    each = tuple(score(row, np.delete(clinicians, i, axis=0)) for i, row in enumerate(clinicians))
    place = None
    if overall.macro_f1.value is not None:
        place = 1 + sum(
            1
            for other in each
            if other.macro_f1.value is not None and other.macro_f1.value > overall.macro_f1.value
        )
    return Standing(judge=overall, against_each=against_each, clinicians=each, place=place)


# Probabilities


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of the reliability curve; the means are None in an empty bin."""

    low: float
    high: float
    count: int
    mean_probability: float | None
    share_met: float | None


@dataclass(frozen=True, slots=True)
class ProbabilityReport:
    """How far probabilities can be taken at their word."""

    brier: Estimate
    brier_of_base_rate: Estimate
    expected_calibration_error: Estimate
    maximum_calibration_error: Estimate
    bins: tuple[ReliabilityBin, ...]


def probability_report(
    probability: FloatArray | Sequence[float],
    met: NDArray[np.integer] | Sequence[int],
    bins: int = 10,
) -> ProbabilityReport:
    """Return Brier score, ECE, MCE and the reliability curve over equal-width bins.

    Shapes: probability (units,) in 0..1, met (units,) 0 or 1; missing units are left out before.
    Bins are closed below; the last one is closed on both sides, so that p = 1 is in it. Range:
    0..1. Undefined: no unit.
    """
    p, y = np.asarray(probability, dtype=np.float64), np.asarray(met, dtype=np.float64)
    if len(p) == 0:
        none = Estimate(value=None, reason="no_units")
        return ProbabilityReport(none, none, none, none, ())
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    filled = count.astype(np.float64)
    mean_p = divide(np.bincount(place, weights=p, minlength=bins).astype(np.float64), filled)
    mean_y = divide(np.bincount(place, weights=y, minlength=bins).astype(np.float64), filled)
    gap = np.abs(mean_p - mean_y)[count > 0]
    curve = tuple(
        ReliabilityBin(
            low=i / bins,
            high=(i + 1) / bins,
            count=int(count[i]),
            mean_probability=float(mean_p[i]) if count[i] else None,
            share_met=float(mean_y[i]) if count[i] else None,
        )
        for i in range(bins)
    )
    return ProbabilityReport(
        brier=Estimate(value=float(np.mean((p - y) ** 2))),
        brier_of_base_rate=Estimate(value=float(y.mean() * (1 - y.mean()))),
        expected_calibration_error=Estimate(value=float((count[count > 0] * gap).sum() / len(p))),
        maximum_calibration_error=Estimate(value=float(gap.max())),
        bins=curve,
    )
