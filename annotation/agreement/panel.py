"""The agreement panel: every coefficient with its interval over conversations.

All numbers come from one table of sufficient statistics per conversation; raters are fixed, so
the intervals are conditional on these annotators.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.agreement.coefficients import (
    CANNOT_TELL,
    MET,
    NOT_MET,
    IntArray,
    krippendorff_alpha,
)
from annotation.bootstrap import (
    DEGENERATE_SHARE,
    MINIMUM_CONVERSATIONS,
    REPLICATES,
    Estimate,
    FloatArray,
    Quantity,
    cluster_estimates,
    collect,
    divide,
    undefined,
)

MINIMUM_UNITS = 10
TENTATIVE_ALPHA = 0.667


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """Answers per unit: arrays (units,) of conversation, met, not met and cannot tell."""

    conversation: IntArray
    met: IntArray
    not_met: IntArray
    cannot_tell: IntArray | None = None

    def __post_init__(self) -> None:
        if not len(self.conversation) == len(self.met) == len(self.not_met):
            raise ValueError("conversation, met and not_met have different lengths")

    def where(self, chosen: NDArray[np.bool_]) -> "UnitCounts":
        """Return only the chosen units, for example those of one dimension."""
        return UnitCounts(
            conversation=self.conversation[chosen],
            met=self.met[chosen],
            not_met=self.not_met[chosen],
            cannot_tell=None if self.cannot_tell is None else self.cannot_tell[chosen],
        )


def unit_counts(codes: IntArray, conversation: IntArray) -> UnitCounts:
    """Count a matrix of codes (raters, units); `conversation` (units,) says whose each unit is."""
    return UnitCounts(
        conversation=conversation,
        met=(codes == MET).sum(axis=0, dtype=np.int64),
        not_met=(codes == NOT_MET).sum(axis=0, dtype=np.int64),
        cannot_tell=(codes == CANNOT_TELL).sum(axis=0, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class AgreementPanel:
    """Every coefficient for one set of units, with counts that are always shown.

    `n_conversations` counts conversations with a pairable unit. `ac1` follows Gwet's convention
    and `fleiss` uses pairable units only; `fleiss_all_rated` lets single answers into its chance
    term. `degenerate` of `replicates` had no alpha.
    """

    alpha: Estimate
    percent_agreement: Estimate
    percent_agreement_pooled: Estimate
    ac1: Estimate
    ac1_pairable_only: Estimate
    brennan_prediger: Estimate
    fleiss: Estimate
    fleiss_all_rated: Estimate
    psa: Estimate
    nsa: Estimate
    macro_f1: Estimate
    prevalence: Estimate
    n_units: int
    n_pairable: int
    n_conversations: int
    n_ratings: int
    n_pairable_ratings: int
    n_cannot_tell: int
    cannot_tell_rate: float | None
    p_alpha_below_667: float | None
    replicates: int
    degenerate: int
    method: str | None


(O01, N1, N0, PA, P, PI_Q, Q, PI_P, MET_PAIRS, NOT_PAIRS, MET_ALL, NOT_ALL, N1_Q, N0_Q) = range(14)

QUANTITIES = (
    Quantity("alpha", (P,), -1.0, 1.0, "no_variation"),
    Quantity("percent_agreement", (P,), 0.0, 1.0, "no_pairable_units"),
    Quantity("percent_agreement_pooled", (P,), 0.0, 1.0, "no_pairable_units"),
    Quantity("ac1", (P,), -1.0, 1.0, "no_pairable_units"),
    Quantity("ac1_pairable_only", (P,), -1.0, 1.0, "no_pairable_units"),
    Quantity("brennan_prediger", (P,), -1.0, 1.0, "no_pairable_units"),
    Quantity("fleiss", (P,), -1.0, 1.0, "no_variation"),
    Quantity("fleiss_all_rated", (P,), -1.0, 1.0, "no_variation"),
    Quantity("psa", (MET_ALL,), 0.0, 1.0, "no_met_answers"),
    Quantity("nsa", (NOT_ALL,), 0.0, 1.0, "no_not_met_answers"),
    Quantity("macro_f1", (P,), 0.0, 1.0, "no_variation"),
    Quantity("prevalence", (N1_Q, N0_Q), 0.0, 1.0, "no_ratings"),
)


def agreement_table(units: UnitCounts) -> FloatArray:
    """Return the sufficient statistics, one row per conversation and 14 columns."""
    n1, n0 = units.met.astype(np.float64), units.not_met.astype(np.float64)
    m = n1 + n0
    pairable, rated = (m >= 2).astype(np.float64), (m >= 1).astype(np.float64)
    others = np.maximum(m - 1, 1)
    met_pairs, not_pairs = n1 * (n1 - 1) * pairable, n0 * (n0 - 1) * pairable
    share = n1 / np.maximum(m, 1)
    columns = [
        n1 * n0 / others * pairable,
        n1 * pairable,
        n0 * pairable,
        (met_pairs + not_pairs) / (np.maximum(m, 1) * others),
        pairable,
        share,
        rated,
        share * pairable,
        met_pairs,
        not_pairs,
        n1 * (m - 1) * pairable,
        n0 * (m - 1) * pairable,
        n1,
        n0,
    ]
    table = collect(units.conversation, columns)
    return table[table[:, Q] > 0]


def agreement_statistics(sums: FloatArray) -> FloatArray:
    """Return the coefficients in the order of QUANTITIES; shapes (B, 14) -> (B, 12), NaN undefined.

    Alpha is 1 - (n-1) o01 / (N1 N0), with o01 = sum n1 n0 / (m-1) over pairable units.
    """
    s = sums.T
    alpha = 1 - divide((s[N1] + s[N0] - 1) * s[O01], s[N1] * s[N0])
    agreement = divide(s[PA], s[P])
    pooled = divide(s[MET_PAIRS] + s[NOT_PAIRS], s[MET_ALL] + s[NOT_ALL])
    by_unit, by_pairable = divide(s[PI_Q], s[Q]), divide(s[PI_P], s[P])
    # A share of exactly 0 or 1 is read from the counts: sums of ratios may round beside it.
    mixed = (s[N1] > 0) & (s[N0] > 0)
    chance_q = 2 * by_unit * (1 - by_unit)
    chance_p = 2 * by_pairable * (1 - by_pairable)
    fleiss = divide(agreement - 1 + chance_p, np.where(mixed, chance_p, 0.0))
    varied = (s[N1_Q] > 0) & (s[N0_Q] > 0)
    fleiss_all = divide(agreement - 1 + chance_q, np.where(varied, chance_q, 0.0))
    psa, nsa = divide(s[MET_PAIRS], s[MET_ALL]), divide(s[NOT_PAIRS], s[NOT_ALL])
    return np.stack(
        [
            alpha,
            agreement,
            pooled,
            (agreement - chance_q) / (1 - chance_q),
            (agreement - chance_p) / (1 - chance_p),
            2 * agreement - 1,
            fleiss,
            fleiss_all,
            psa,
            nsa,
            (psa + nsa) / 2,
            divide(s[N1_Q], s[N1_Q] + s[N0_Q]),
        ],
        axis=1,
    )


def _all_agree(total: FloatArray) -> FloatArray:
    moved = total.copy()
    moved[[O01, PA, MET_PAIRS, NOT_PAIRS]] = 0.0, total[P], total[MET_ALL], total[NOT_ALL]
    moved[[N1_Q, N0_Q]] = total[N1_Q] + total[N0_Q], 0.0
    return moved


def _all_disagree(total: FloatArray) -> FloatArray:
    moved = total.copy()
    moved[[O01, PA, MET_PAIRS, NOT_PAIRS]] = (total[N1] + total[N0]) / 2, 0.0, 0.0, 0.0
    moved[[N1_Q, N0_Q]] = 0.0, total[N1_Q] + total[N0_Q]
    return moved


def agreement_panel(
    units: UnitCounts,
    rng: np.random.Generator,
    *,
    replicates: int = REPLICATES,
    minimum_units: int = MINIMUM_UNITS,
    minimum_conversations: int = MINIMUM_CONVERSATIONS,
) -> AgreementPanel:
    """Return every coefficient with its interval over conversations.

    A coefficient is withheld, with a reason, below `minimum_units` pairable units or
    `minimum_conversations` conversations; the counts and the prevalence stay.
    """
    table = agreement_table(units)
    result = cluster_estimates(
        table,
        agreement_statistics,
        QUANTITIES,
        rng,
        best=_all_agree,
        worst=_all_disagree,
        replicates=replicates,
    )
    estimates = dict(result.estimates)
    total = table.sum(axis=0)
    conversations = result.conversations["alpha"]
    withheld = None
    if total[P] == 0:
        withheld = "no_pairable_units"
    elif total[P] < minimum_units:
        withheld = "too_few_units"
    elif conversations < minimum_conversations:
        withheld = "too_few_conversations"
    if withheld is not None:
        coefficients = [q.name for q in QUANTITIES if q.name != "prevalence"]
        estimates.update({name: undefined(withheld) for name in coefficients})
    elif estimates["alpha"].value is not None:
        estimates["alpha"] = _published(estimates["alpha"], units)
    draws = result.replicates["alpha"]
    defined = draws[~np.isnan(draws)]
    below = None
    if (
        estimates["alpha"].value is not None
        and len(defined) >= (1 - DEGENERATE_SHARE) * len(draws) > 0
    ):
        below = float((defined < TENTATIVE_ALPHA).mean())
    ratings = int(total[N1_Q] + total[N0_Q])
    unsure = 0 if units.cannot_tell is None else int(units.cannot_tell.sum())
    return AgreementPanel(
        **estimates,
        n_units=int(total[Q]),
        n_pairable=int(total[P]),
        n_conversations=conversations,
        n_ratings=ratings,
        n_pairable_ratings=int(total[N1] + total[N0]),
        n_cannot_tell=unsure,
        cannot_tell_rate=unsure / (unsure + ratings) if unsure + ratings else None,
        p_alpha_below_667=below,
        replicates=len(draws),
        degenerate=result.degenerate("alpha"),
        method=estimates["alpha"].method,
    )


def _published(closed: Estimate, units: UnitCounts) -> Estimate:
    # The published number is the package's; the interval must still enclose it.
    counts = np.stack([units.not_met, units.met], axis=1)
    value = krippendorff_alpha(counts).value
    if value is None or closed.low is None or closed.high is None:
        return Estimate(value=value, reason=closed.reason)
    return Estimate(
        value=value,
        low=min(closed.low, value),
        high=max(closed.high, value),
        method=closed.method,
    )
