"""Point coefficients from value counts (units x categories) or codes (raters x units).

They work for any number of categories. A negative code (missing, cannot tell) is no category.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import krippendorff
import numpy as np
from numpy.typing import NDArray

from annotation.bootstrap import Estimate, FloatArray, undefined

IntArray = NDArray[np.integer]

NOT_MET = 0
MET = 1
MISSING = -1
CANNOT_TELL = -2


@dataclass(frozen=True, slots=True)
class RatingMatrix:
    """Answer codes (raters x units), with the keys of both axes.

    `units` is (units, 2): reply and criterion. Codes are MET, NOT_MET, MISSING, CANNOT_TELL.
    """

    codes: NDArray[np.int8]
    annotators: NDArray[np.int64]
    units: NDArray[np.int64]


def rating_matrix(
    reply: Sequence[int] | IntArray,
    criterion: Sequence[int] | IntArray,
    annotator: Sequence[int] | IntArray,
    answer: Sequence[int] | IntArray,
) -> RatingMatrix:
    """Arrange one row per label as raters x units, keyed by (reply, criterion).

    Shapes: four arrays (labels,). A pair without a row is MISSING. Two answers of one annotator
    to one unit are an error: which one counts is decided before.
    """
    pairs = np.stack([np.asarray(reply, np.int64), np.asarray(criterion, np.int64)], axis=1)
    pairs = pairs.reshape(-1, 2)
    units, unit = np.unique(pairs, axis=0, return_inverse=True)
    unit = unit.reshape(-1)
    annotators, rater = np.unique(np.asarray(annotator, np.int64), return_inverse=True)
    place = rater * max(len(units), 1) + unit
    if len(np.unique(place)) != len(place):
        raise ValueError("an annotator has two answers to one unit")
    codes = np.full((len(annotators), len(units)), MISSING, dtype=np.int8)
    codes[rater, unit] = np.asarray(answer, np.int8)
    return RatingMatrix(codes=codes, annotators=annotators, units=units)


def answer_codes(
    rows: Sequence[Sequence[object]], categories: Sequence[object]
) -> NDArray[np.int8]:
    """Return raters x units codes 0..q-1, with MISSING for None; another value is an error."""
    place = {category: code for code, category in enumerate(categories)}
    place[None] = MISSING
    return np.array([[place[value] for value in row] for row in rows], dtype=np.int8).reshape(
        len(rows), len(rows[0]) if rows else 0
    )


def value_counts(codes: IntArray, categories: int = 2) -> NDArray[np.int64]:
    """Count the answers per unit and category; shapes (raters, units) -> (units, categories).

    Negative codes (missing, cannot tell) are not a category.
    """
    return np.stack([(codes == c).sum(axis=0, dtype=np.int64) for c in range(categories)], axis=1)


def krippendorff_alpha(counts: IntArray) -> Estimate:
    """Return nominal alpha, by the `krippendorff` package.

    Shape: counts (units, categories). Units with under two answers are missing. Range: up to 1,
    negative below chance. Undefined: no pairable unit; one category only among pairable values.
    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.
    """
    pairable = _pairable(counts)
    if len(pairable) == 0:
        return undefined("no_pairable_units")
    if np.count_nonzero(pairable.sum(axis=0)) < 2:
        return undefined("no_variation")
    value = krippendorff.alpha(value_counts=pairable, level_of_measurement="nominal")
    return Estimate(value=float(value))


def percent_agreement(counts: IntArray) -> Estimate:
    """Return the mean over pairable units of the share of agreeing pairs of answers.

    Shape: counts (units, categories). Range: 0..1. Undefined: no pairable unit. Source: Gwet 2014.
    """
    agreement = _observed(counts)
    return undefined("no_pairable_units") if agreement is None else Estimate(value=agreement)


def percent_agreement_pooled(counts: IntArray) -> Estimate:
    """Return the share of agreeing pairs of answers, all pairs of all units pooled.

    Shape: counts (units, categories). Range: 0..1. Undefined: no pairable unit.
    """
    pairable = _pairable(counts).astype(np.float64)
    rated = pairable.sum(axis=1)
    if len(pairable) == 0:
        return undefined("no_pairable_units")
    agreeing = (pairable * (pairable - 1)).sum()
    return Estimate(value=float(agreeing / (rated * (rated - 1)).sum()))


def brennan_prediger(counts: IntArray) -> Estimate:
    """Return (pa - 1/q) / (1 - 1/q), q being the number of columns and never inferred from data.

    Shape: counts (units, categories). Range: -1/(q-1)..1. Undefined: no pairable unit.
    Source: Brennan and Prediger 1981.
    """
    return _chance_corrected(_observed(counts), 1 / counts.shape[1])


def gwet_ac1(counts: IntArray, *, pairable_only: bool = False) -> Estimate:
    """Return AC1; the prevalence is averaged over every unit with an answer (Gwet's convention).

    Shape: counts (units, categories). `pairable_only` drops units with one answer first. Range:
    up to 1. Undefined: no pairable unit. Source: Gwet 2008, doi:10.1348/000711006X126600.
    """
    shares = _category_shares(_pairable(counts) if pairable_only else counts)
    expected = float((shares * (1 - shares)).sum() / (counts.shape[1] - 1))
    return _chance_corrected(_observed(counts), expected)


def fleiss_kappa(counts: IntArray, *, pairable_only: bool = True) -> Estimate:
    """Return Fleiss' kappa, generalised to unequal numbers of answers per unit.

    Shape: counts (units, categories). Single-answer units contaminate the chance term, so they
    are dropped by default. Range: up to 1. Undefined: no pairable unit; one category only.
    Source: Fleiss 1971; Gwet 2014 for missing answers.
    """
    shares = _category_shares(_pairable(counts) if pairable_only else counts)
    return _chance_corrected(_observed(counts), float((shares**2).sum()))


def specific_agreement(counts: IntArray, category: int) -> Estimate:
    """Return sum n_c (n_c - 1) / sum n_c (m - 1): given one answer c, how often another is c.

    Shape: counts (units, categories). Range: 0..1. Undefined: c never given in a pairable unit.
    Source: Cicchetti and Feinstein 1990.
    """
    pairable = _pairable(counts).astype(np.float64)
    given = pairable[:, category]
    pairs = (given * (pairable.sum(axis=1) - 1)).sum()
    if len(pairable) == 0:
        return undefined("no_pairable_units")
    if pairs == 0:
        return undefined("no_met_answers" if category == MET else "no_not_met_answers")
    return Estimate(value=float((given * (given - 1)).sum() / pairs))


def pairwise_macro_f1(counts: IntArray) -> Estimate:
    """Return the mean of positive and negative specific agreement: macro-F1 over ordered pairs.

    Shape: counts (units, 2). Range: 0..1. Undefined: no pairable unit; one category only.
    """
    met, not_met = specific_agreement(counts, MET), specific_agreement(counts, NOT_MET)
    if met.value is None or not_met.value is None:
        no_pairs = met.reason == "no_pairable_units"
        return undefined("no_pairable_units" if no_pairs else "no_variation")
    return Estimate(value=(met.value + not_met.value) / 2)


def cohen_kappa(a: IntArray, b: IntArray, categories: int = 2) -> Estimate:
    """Return Cohen's kappa of two raters on the units that both answered.

    Shapes: a, b (units,) codes, negative is missing. Range: -1..1. Undefined: no common unit;
    both gave one and the same category. Source: Cohen 1960.
    """
    table = _crossing(a, b, categories)
    total = int(table.sum())
    if total == 0:
        return undefined("no_pairable_units")
    expected = int(table.sum(axis=0) @ table.sum(axis=1))
    if expected == total**2:
        return undefined("no_variation")
    observed = int(np.trace(table)) * total
    return Estimate(value=(observed - expected) / (total**2 - expected))


@dataclass(frozen=True, slots=True)
class PairKappa:
    """Cohen's kappa of raters `first` < `second` (rows of the matrix) on `units` common units."""

    first: int
    second: int
    units: int
    kappa: Estimate


def cohen_pairs(codes: IntArray, categories: int = 2) -> tuple[PairKappa, ...]:
    """Return Cohen's kappa of every pair of raters; shape: codes (raters, units)."""
    return tuple(
        PairKappa(
            first=i,
            second=j,
            units=int(((codes[i] >= 0) & (codes[j] >= 0)).sum()),
            kappa=cohen_kappa(codes[i], codes[j], categories),
        )
        for i in range(len(codes))
        for j in range(i + 1, len(codes))
    )


def mean_kappa(pairs: Sequence[PairKappa], *, weighted: bool = True) -> Estimate:
    """Return the mean of the defined pairwise kappas.

    Weighted by common units, or plain, which is Light's kappa (Light 1971). Range: -1..1.
    Undefined: no pair has a kappa.
    """
    defined = [(p.kappa.value, p.units) for p in pairs if p.kappa.value is not None]
    if defined:
        weights = [n if weighted else 1 for _, n in defined]
        return Estimate(
            value=sum(kappa * w for (kappa, _), w in zip(defined, weights, strict=True))
            / sum(weights)
        )
    common = any(pair.units for pair in pairs)
    return undefined("no_variation" if common else "no_pairable_units")


def conger_kappa(codes: IntArray, categories: int = 2) -> Estimate:
    """Return Conger's kappa: chance from each rater's own shares of the categories.

    Shape: codes (raters, units), negative is missing. Range: up to 1. Undefined: no pairable
    unit; one category only. Source: Conger 1980; Gwet 2014 for missing answers.
    """
    given = np.stack([(codes == c).sum(axis=1) for c in range(categories)], axis=1)
    given = given[given.sum(axis=1) > 0]
    agreement = _observed(value_counts(codes, categories))
    if agreement is None:
        return undefined("no_pairable_units")
    shares = given / given.sum(axis=1, keepdims=True)
    expected = (shares.mean(axis=0) ** 2 - shares.var(axis=0, ddof=1) / len(shares)).sum()
    return _chance_corrected(agreement, float(expected))


def _pairable(counts: IntArray) -> IntArray:
    pairable: IntArray = counts[counts.sum(axis=1) >= 2]
    return pairable


def _observed(counts: IntArray) -> float | None:
    pairable = _pairable(counts).astype(np.float64)
    if len(pairable) == 0:
        return None
    rated = pairable.sum(axis=1)
    return float(((pairable * (pairable - 1)).sum(axis=1) / (rated * (rated - 1))).mean())


def _category_shares(counts: IntArray) -> FloatArray:
    rated = counts[counts.sum(axis=1) > 0]
    if len(rated) == 0:
        return np.zeros(counts.shape[1])
    shares: FloatArray = (rated / rated.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _chance_corrected(observed: float | None, expected: float) -> Estimate:
    if observed is None:
        return undefined("no_pairable_units")
    if 1 - expected <= 1e-15:
        return undefined("no_variation")
    return Estimate(value=(observed - expected) / (1 - expected))


def _crossing(a: IntArray, b: IntArray, categories: int) -> NDArray[np.int64]:
    both = (a >= 0) & (b >= 0)
    cell = a[both].astype(np.int64) * categories + b[both]
    return np.bincount(cell, minlength=categories**2).reshape(categories, categories)
