"""Intervals over whole conversations, from one table of sufficient statistics.

A table has one row per conversation and one column per additive quantity. A statistic is a
function of the column sums, so that a replicate costs one row of a matrix product and the
interval is always of the same statistic as the point.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Statistic = Callable[[FloatArray], FloatArray]
Direction = Callable[[FloatArray], FloatArray]

REPLICATES = 2000
LEVEL = 0.95
MINIMUM_CONVERSATIONS = 5
PERCENTILE_CONVERSATIONS = 50
DEGENERATE_SHARE = 0.05
CHUNK = 250
EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, or None with a reason code.

    `reason` says why the value is None or, beside a value, why the interval is None.
    `method` names the interval: percentile, jackknife, t, linearised or exact.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    method: str | None = None

    def __post_init__(self) -> None:
        for number in (self.value, self.low, self.high):
            if number is not None and not math.isfinite(number):
                raise ValueError("an estimate is a finite number or None with a reason")
        if self.value is None and self.reason is None:
            raise ValueError("an estimate without a value needs a reason")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One output column of a statistic.

    `support` lists table columns: a conversation informs the quantity when any of them is not
    zero there. `low` and `high` are the range; `undefined` is the reason code when a
    denominator is zero.
    """

    name: str
    support: tuple[int, ...]
    low: float
    high: float
    undefined: str


@dataclass(frozen=True, slots=True)
class ClusterEstimates:
    """Estimates by name, with the replicates that they came from (NaN where undefined)."""

    estimates: Mapping[str, Estimate]
    replicates: Mapping[str, FloatArray]
    conversations: Mapping[str, int]

    def degenerate(self, name: str) -> int:
        """Count the replicates in which the quantity was undefined."""
        return int(np.isnan(self.replicates[name]).sum())


def undefined(reason: str) -> Estimate:
    """Return the estimate that has no value, for this reason."""
    return Estimate(value=None, reason=reason)


def divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide elementwise; NaN where the denominator is zero, without a warning.

    Shapes: broadcastable. NaN marks an undefined replicate and never leaves these modules.
    """
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    result = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


def collect(group: NDArray[np.integer], columns: Sequence[NDArray[np.generic]]) -> FloatArray:
    """Sum unit-level columns within groups.

    Shapes: group (units,) of any integers, each column (units,); result (groups, columns) in
    ascending order of group. Missing: none allowed.
    """
    if len(group) == 0:
        return np.zeros((0, len(columns)))
    keys, position = np.unique(group, return_inverse=True)
    sums = [
        np.bincount(position, weights=np.asarray(column, dtype=np.float64), minlength=len(keys))
        for column in columns
    ]
    return np.stack(sums, axis=1)


@lru_cache(maxsize=4096)
def t_quantile(degrees: int, level: float = LEVEL) -> float:
    """Return the two-sided Student quantile at `level` with `degrees` >= 1 of freedom."""
    # Imported here, as below: it would slow the start of every command by half a second.
    from scipy import special

    return float(special.stdtrit(degrees, 0.5 + level / 2))


def clopper_pearson(successes: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the exact binomial interval (Clopper and Pearson 1934).

    `trials` > 0 may be an effective, fractional number. Range: 0 <= low <= high <= 1.
    """
    from scipy import special

    tail = (1 - level) / 2
    failures = max(trials - successes, 0.0)
    low = float(special.betaincinv(successes, failures + 1, tail)) if successes > 0 else 0.0
    high = float(special.betaincinv(successes + 1, failures, 1 - tail)) if failures > 0 else 1.0
    return low, high


def replicate_sums(table: FloatArray, rng: np.random.Generator, replicates: int) -> FloatArray:
    """Draw conversations with replacement and return the column sums of each replicate.

    Shapes: table (K, k), K >= 1; result (replicates, k). Memory is bounded by CHUNK x K.
    """
    clusters = len(table)
    sums = np.empty((replicates, table.shape[1]))
    for start in range(0, replicates, CHUNK):
        size = min(CHUNK, replicates - start)
        drawn = rng.integers(0, clusters, size=(size, clusters))
        drawn += np.arange(size)[:, None] * clusters
        weights = np.bincount(drawn.ravel(), minlength=size * clusters).reshape(size, clusters)
        sums[start : start + size] = weights.astype(np.float64) @ table
    return sums


def delete_one(table: FloatArray, statistic: Statistic) -> FloatArray:
    """Return the statistic with each conversation left out; shapes (K, k) -> (K, quantities)."""
    return statistic(table.sum(axis=0) - table)


def jackknife_error(values: FloatArray) -> float:
    """Return the delete-one-conversation standard error: sqrt((K-1)/K sum (v_i - mean)^2).

    Shape: values (K,), K >= 2, all defined. Source: Efron and Stein 1981.
    """
    count = len(values)
    return float(np.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2)))


def bounded(
    value: float, low: float, high: float, floor: float, ceiling: float, method: str
) -> Estimate:
    """Return the estimate with its interval inside the range and around the value.

    The point is clipped too, against rounding errors.
    """
    value = min(max(value, floor), ceiling)
    return Estimate(
        value=value,
        low=max(floor, min(low, value)),
        high=min(ceiling, max(high, value)),
        method=method,
    )


def cluster_estimates(
    table: FloatArray,
    statistic: Statistic,
    quantities: Sequence[Quantity],
    rng: np.random.Generator,
    *,
    best: Direction,
    worst: Direction,
    replicates: int = REPLICATES,
) -> ClusterEstimates:
    """Estimate every quantity with an interval over conversations.

    Shapes: table (K, k); statistic maps (B, k) sums to (B, quantities), NaN where undefined.
    With K >= 50 informing conversations the interval is the cluster bootstrap's percentile
    interval; with 5 <= K < 50, or when over 5 % of replicates are undefined, the delete-one
    jackknife with t(K-1); below 5 none. Data without any spread between conversations would give
    a zero-width interval; there `best` and `worst` (sums to sums with all units right, all units
    wrong) carry the Clopper-Pearson limits on K conversations over to the quantity.
    """
    total = table.sum(axis=0)
    point = statistic(total[None, :])[0]
    informs = np.stack([(table[:, list(q.support)] != 0).any(axis=1) for q in quantities], axis=1)
    counts = informs.sum(axis=0)
    draws = np.empty((0, len(quantities)))
    left_out = np.empty((0, len(quantities)))
    if len(table) and counts.max() >= MINIMUM_CONVERSATIONS:
        draws = statistic(replicate_sums(table, rng, replicates))
        left_out = delete_one(table, statistic)
    estimates: dict[str, Estimate] = {}
    for j, quantity in enumerate(quantities):
        count = int(counts[j])
        if np.isnan(point[j]):
            estimates[quantity.name] = undefined(quantity.undefined)
            continue
        # Sums of floats may leave the range by a rounding error.
        value = min(max(float(point[j]), quantity.low), quantity.high)
        if count < MINIMUM_CONVERSATIONS:
            estimates[quantity.name] = Estimate(value=value, reason="too_few_conversations")
        elif _is_constant(left_out[informs[:, j], j]):
            estimates[quantity.name] = _exact(
                total, statistic, j, quantity, count, best(total), worst(total)
            )
        else:
            estimates[quantity.name] = _spread(
                value, draws[:, j], left_out[informs[:, j], j], quantity
            )
    return ClusterEstimates(
        estimates=estimates,
        replicates={q.name: draws[:, j] for j, q in enumerate(quantities)},
        conversations={q.name: int(counts[j]) for j, q in enumerate(quantities)},
    )


def _is_constant(left_out: FloatArray) -> bool:
    return not np.isnan(left_out).any() and float(np.ptp(left_out)) <= EQUAL


def _spread(value: float, draws: FloatArray, left_out: FloatArray, quantity: Quantity) -> Estimate:
    defined = draws[~np.isnan(draws)]
    degenerate = len(draws) - len(defined)
    count = len(left_out)
    if count >= PERCENTILE_CONVERSATIONS and degenerate <= DEGENERATE_SHARE * len(draws):
        low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return bounded(value, float(low), float(high), quantity.low, quantity.high, "percentile")
    if np.isnan(left_out).any():
        return Estimate(value=value, reason="degenerate_replicates")
    half = t_quantile(count - 1) * jackknife_error(left_out)
    return bounded(value, value - half, value + half, quantity.low, quantity.high, "jackknife")


def _exact(
    total: FloatArray,
    statistic: Statistic,
    j: int,
    quantity: Quantity,
    count: int,
    best: FloatArray,
    worst: FloatArray,
) -> Estimate:
    value, top, bottom = statistic(np.stack([total, best, worst]))[:, j]
    if np.isnan(top) or np.isnan(bottom) or top <= bottom:
        return Estimate(value=float(value), reason="no_spread")
    share = float(np.clip((value - bottom) / (top - bottom), 0.0, 1.0))
    lower, upper = clopper_pearson(share * count, count)
    down = 1 - lower / share if share > 0 else 0.0
    up = (upper - share) / (1 - share) if share < 1 else 0.0
    moved = statistic(np.stack([total + down * (worst - total), total + up * (best - total)]))
    low, high = moved[:, j]
    if np.isnan(low) or np.isnan(high):
        return Estimate(value=float(value), reason="no_spread")
    return bounded(float(value), float(low), float(high), quantity.low, quantity.high, "exact")
