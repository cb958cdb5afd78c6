"""Scores of respondents from criterion verdicts, and recognition without routing.

Input is flat arrays, one row per criterion of a reply. A reply's score is the weight of its met
criteria over the weight of its judged ones; samples average within the conversation; the
conversation is the cluster of every interval.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotation.bootstrap import (
    EQUAL,
    MINIMUM_CONVERSATIONS,
    Estimate,
    FloatArray,
    bounded,
    clopper_pearson,
    divide,
    t_quantile,
    undefined,
)

IntArray = NDArray[np.integer]
BoolArray = NDArray[np.bool_]

MINIMUM_JUDGED_SHARE = 0.5
BOUNDS_FROM_MISSING = 0.05


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One row per criterion of a reply, all arrays (rows,).

    Keys are integers of any kind. `met` is read only where `judged`; an unjudged criterion is a
    row with judged False, so that its weight is known to be missing.
    """

    respondent: IntArray
    conversation: IntArray
    sample: IntArray
    criterion: IntArray
    dimension: IntArray
    weight: FloatArray
    met: BoolArray
    judged: BoolArray

    def __post_init__(self) -> None:
        rows = len(self.respondent)
        columns = (
            self.conversation,
            self.sample,
            self.criterion,
            self.dimension,
            self.weight,
            self.met,
            self.judged,
        )
        if any(len(column) != rows for column in columns):
            raise ValueError("the columns of verdicts have different lengths")
        if not (np.isfinite(self.weight).all() and (np.asarray(self.weight) > 0).all()):
            raise ValueError("every weight is a positive number")
        unit = _codes(self.respondent, self.conversation, self.sample, self.criterion)
        if len(np.unique(unit)) != rows:
            raise ValueError("a criterion of a reply has two verdicts")


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over conversations with its interval, and what is missing from it.

    `pooled` is met weight over judged weight of all conversations together. `missing_weight` is
    the unjudged share of weight; above 5 % `bounds` are the scores with every unjudged criterion
    not met, and met. `n_unscored` replies had under half of their weight judged.
    """

    score: Estimate
    pooled: Estimate
    missing_weight: float
    bounds: tuple[float, float] | None
    n_conversations: int
    n_replies: int
    n_unscored: int


@dataclass(frozen=True, slots=True)
class RespondentScore:
    """The overall score of a respondent and its scores by dimension key."""

    respondent: int
    overall: Score
    dimensions: Mapping[int, Score]


@dataclass(frozen=True, slots=True)
class Replies:
    """Weights summed over some criteria of each reply, all arrays (replies,)."""

    respondent: IntArray
    conversation: IntArray
    met: FloatArray
    judged: FloatArray
    total: FloatArray
    sample_weight: FloatArray


def clustered_mean(values: FloatArray, cluster: IntArray) -> tuple[float, float | None, int]:
    """Return mean, cluster-robust standard error and number of clusters.

    Shapes: values (n,), n >= 1, cluster (n,). SE^2 = G/(G-1) sum_c (sum_{i in c} (v_i - mean))^2
    / n^2; with one value per cluster this is sd / sqrt(G). Undefined: None with one cluster.
    Source: Miller 2024, arXiv:2411.00640.
    """
    mean = float(values.mean())
    _, place = np.unique(cluster, return_inverse=True)
    residuals = np.bincount(place, weights=values - mean)
    count = len(residuals)
    if count < 2:
        return mean, None, count
    error = np.sqrt((residuals**2).sum() * count / (count - 1)) / len(values)
    return mean, float(error), count


def share_estimate(value: float, error: float | None, clusters: int, method: str = "t") -> Estimate:
    """Return a share in 0..1 with a t(G-1) interval.

    Without any spread between clusters the interval is Clopper and Pearson's on the number of
    clusters, never of zero width. Below 5 clusters there is none.
    """
    value = min(max(value, 0.0), 1.0)
    if clusters < MINIMUM_CONVERSATIONS or error is None:
        return Estimate(value=value, reason="too_few_conversations")
    if error <= EQUAL:
        low, high = clopper_pearson(value * clusters, clusters)
        return bounded(value, low, high, 0.0, 1.0, "exact")
    half = t_quantile(clusters - 1) * error
    return bounded(value, value - half, value + half, 0.0, 1.0, method)


def ratio_estimate(numerator: FloatArray, denominator: FloatArray, cluster: IntArray) -> Estimate:
    """Return sum(numerator) / sum(denominator) with a linearised, clustered t interval.

    Shapes: three arrays (n,). With e_c = sum_{i in c} (numerator - rate x denominator), SE =
    sqrt(G/(G-1) sum e_c^2) / sum(denominator) over the G clusters with a denominator. Range:
    0..1. Undefined: the denominator is 0.
    """
    rate, error, clusters = _ratio(numerator, denominator, cluster)
    if rate is None:
        return undefined("empty_denominator")
    return share_estimate(rate, error, clusters, "linearised")


def paired_difference(a: FloatArray, b: FloatArray, cluster: IntArray) -> Estimate:
    """Return the mean of a - b over the same conversations with a clustered t interval.

    Shapes: a, b, cluster (n,), scores in 0..1. Range: -1..1. Undefined: no common conversation.
    Differences that are all equal have no interval (`no_spread`).
    """
    if len(a) == 0:
        return undefined("no_common_conversations")
    mean, error, clusters = clustered_mean(a - b, cluster)
    if error is None or clusters < MINIMUM_CONVERSATIONS:
        return Estimate(value=mean, reason="too_few_conversations")
    if error <= EQUAL:
        return Estimate(value=mean, reason="no_spread")
    half = t_quantile(clusters - 1) * error
    return bounded(mean, mean - half, mean + half, -1.0, 1.0, "t")


def respondent_scores(verdicts: Verdicts) -> tuple[RespondentScore, ...]:
    """Return the scores of every respondent, in ascending order of its key."""
    keys = np.unique(verdicts.respondent)
    overall = _scores(sum_replies(verdicts, np.ones(len(verdicts.weight), dtype=np.bool_)))
    dimensions = {
        int(key): _scores(sum_replies(verdicts, verdicts.dimension == key))
        for key in np.unique(verdicts.dimension)
    }
    return tuple(
        RespondentScore(
            respondent=int(key),
            overall=overall[int(key)],
            dimensions={
                dimension: scores[int(key)]
                for dimension, scores in dimensions.items()
                if int(key) in scores
            },
        )
        for key in keys
    )


def sum_replies(verdicts: Verdicts, chosen: BoolArray) -> Replies:
    """Sum the weights of the chosen criteria by reply; a reply without any is left out."""
    reply = _codes(
        verdicts.respondent[chosen], verdicts.conversation[chosen], verdicts.sample[chosen]
    )
    _, first, place = np.unique(reply, return_index=True, return_inverse=True)
    weight, judged = verdicts.weight[chosen], verdicts.judged[chosen]
    met = verdicts.met[chosen] & judged
    respondent = verdicts.respondent[chosen][first]
    conversation = verdicts.conversation[chosen][first]
    return Replies(
        respondent=respondent,
        conversation=conversation,
        met=_sum(place, weight * met, len(first)),
        judged=_sum(place, weight * judged, len(first)),
        total=_sum(place, weight, len(first)),
        sample_weight=_sample_weights(respondent, conversation),
    )


def conversation_scores(replies: Replies) -> tuple[IntArray, IntArray, FloatArray]:
    """Return respondent, conversation and score, one row for each pair that has a score.

    The score is the mean over samples of met / judged weight. A reply with under half of its
    weight judged has no score, and its pair none unless another sample has one.
    """
    scored = is_scored(replies)
    pair = _codes(replies.respondent, replies.conversation)[scored]
    _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    share = replies.met[scored] / replies.judged[scored]
    samples = np.bincount(place, minlength=len(first))
    return (
        replies.respondent[scored][first],
        replies.conversation[scored][first],
        _sum(place, share, len(first)) / np.maximum(samples, 1),
    )


def is_scored(replies: Replies) -> BoolArray:
    """Say which replies have at least half of their weight judged."""
    enough: BoolArray = replies.judged >= MINIMUM_JUDGED_SHARE * replies.total
    return enough


def _scores(replies: Replies) -> dict[int, Score]:
    respondents, conversations, values = conversation_scores(replies)
    scored = is_scored(replies)
    missing = replies.total - replies.judged
    result = {}
    for key in np.unique(replies.respondent):
        own = replies.respondent == key
        weight = replies.sample_weight[own]
        chosen = respondents == key
        if chosen.any():
            score = share_estimate(*clustered_mean(values[chosen], conversations[chosen]))
        else:
            score = undefined("too_little_judged")
        # Bounds average like the score: samples within the conversation, then conversations.
        total, met, open_weight = replies.total[own], replies.met[own], missing[own]
        share = float((weight * open_weight).sum() / (weight * total).sum())
        low = float((weight * met / total).sum() / weight.sum())
        high = float((weight * (met + open_weight) / total).sum() / weight.sum())
        result[int(key)] = Score(
            score=score,
            pooled=ratio_estimate(
                weight * met, weight * replies.judged[own], replies.conversation[own]
            ),
            missing_weight=share,
            bounds=(low, high) if share > BOUNDS_FROM_MISSING else None,
            n_conversations=int(chosen.sum()),
            n_replies=int(own.sum()),
            n_unscored=int((~scored[own]).sum()),
        )
    return result


# Recognition without routing


@dataclass(frozen=True, slots=True)
class ConditionalFailure:
    """A share of pairs where recognition was met in full; a sample weighs one over its number.

    `open` counts replies left out because an unjudged criterion leaves them undecided.
    """

    rate: Estimate
    numerator: float
    denominator: float
    clusters: int
    open: int


@dataclass(frozen=True, slots=True)
class RecognitionWithoutRouting:
    """The headline (at least one resource criterion not met) and the share with none met."""

    any_not_met: ConditionalFailure
    none_met: ConditionalFailure


@dataclass(frozen=True, slots=True)
class RoutingFindings:
    """Recognition without routing, pooled and by respondent key.

    `n_not_applicable` replies belong to conversations without a recognition or without a
    resource criterion; they are in no denominator.
    """

    pooled: RecognitionWithoutRouting
    respondents: Mapping[int, RecognitionWithoutRouting]
    n_not_applicable: int


def recognition_without_routing(
    verdicts: Verdicts,
    *,
    recognition: int,
    resources: int,
    excluded: Collection[int] = (),
) -> RoutingFindings:
    """Return how often full recognition goes without routing to human help.

    `recognition` and `resources` are dimension keys; `excluded` respondents (references) are left
    out. A pair is open, excluded and counted when an unjudged criterion leaves its recognition or
    its failure undecided. Pooled clusters are conversations, which respondents share.
    """
    kept = ~np.isin(verdicts.respondent, list(excluded))
    reply = _codes(verdicts.respondent[kept], verdicts.conversation[kept], verdicts.sample[kept])
    _, first, place = np.unique(reply, return_index=True, return_inverse=True)
    dimension, judged = verdicts.dimension[kept], verdicts.judged[kept]
    met = verdicts.met[kept] & judged
    not_met = ~verdicts.met[kept] & judged

    def count(rows: BoolArray) -> FloatArray:
        return _sum(place, rows, len(first))

    recognises, routes = dimension == recognition, dimension == resources
    applicable = (count(recognises) > 0) & (count(routes) > 0)
    respondent = verdicts.respondent[kept][first]
    conversation = verdicts.conversation[kept][first]
    replies = _RoutingReplies(
        respondent=respondent[applicable],
        conversation=conversation[applicable],
        weight=_sample_weights(respondent, conversation)[applicable],
        missed=(count(recognises & not_met) > 0)[applicable],
        recognition_open=(count(recognises & ~judged) > 0)[applicable],
        resource_met=(count(routes & met) > 0)[applicable],
        resource_not_met=(count(routes & not_met) > 0)[applicable],
        resource_open=(count(routes & ~judged) > 0)[applicable],
    )
    everyone = np.ones(len(replies.weight), dtype=np.bool_)
    return RoutingFindings(
        pooled=_routing(replies, everyone),
        respondents={
            int(key): _routing(replies, replies.respondent == key) for key in np.unique(respondent)
        },
        n_not_applicable=int((~applicable).sum()),
    )


@dataclass(frozen=True, slots=True)
class _RoutingReplies:
    respondent: IntArray
    conversation: IntArray
    weight: FloatArray
    missed: BoolArray
    recognition_open: BoolArray
    resource_met: BoolArray
    resource_not_met: BoolArray
    resource_open: BoolArray


def _routing(replies: _RoutingReplies, chosen: BoolArray) -> RecognitionWithoutRouting:
    recognised = chosen & ~replies.missed & ~replies.recognition_open
    unknown = chosen & ~replies.missed & replies.recognition_open
    undecided_any = ~replies.resource_not_met & replies.resource_open
    undecided_none = ~replies.resource_met & replies.resource_open

    def failure(failed: BoolArray, undecided: BoolArray) -> ConditionalFailure:
        decided = recognised & ~undecided
        denominator = replies.weight * decided
        numerator = denominator * failed
        return ConditionalFailure(
            rate=ratio_estimate(numerator, denominator, replies.conversation),
            numerator=float(numerator.sum()),
            denominator=float(denominator.sum()),
            clusters=len(np.unique(replies.conversation[decided])),
            open=int((unknown | (recognised & undecided)).sum()),
        )

    return RecognitionWithoutRouting(
        any_not_met=failure(replies.resource_not_met, undecided_any),
        none_met=failure(~replies.resource_met, undecided_none),
    )


def _ratio(
    numerator: FloatArray, denominator: FloatArray, cluster: IntArray
) -> tuple[float | None, float | None, int]:
    total = float(denominator.sum())
    if total <= 0:
        return None, None, 0
    rate = float(numerator.sum() / total)
    _, place = np.unique(cluster, return_inverse=True)
    size = int(place.max()) + 1
    residuals = _sum(place, numerator - rate * denominator, size)
    count = int((_sum(place, denominator, size) > 0).sum())
    if count < 2:
        return rate, None, count
    return rate, float(np.sqrt((residuals**2).sum() * count / (count - 1)) / total), count


def _codes(*keys: IntArray) -> NDArray[np.int64]:
    # One integer per distinct combination, so that grouping sorts one array.
    combined = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        values, place = np.unique(key, return_inverse=True)
        combined = combined * max(len(values), 1) + place
    return combined


def _sum(place: IntArray, values: NDArray[np.generic], size: int) -> FloatArray:
    weights = np.asarray(values, dtype=np.float64)
    return np.bincount(place, weights=weights, minlength=size).astype(np.float64)


def _sample_weights(respondent: IntArray, conversation: IntArray) -> FloatArray:
    _, place, samples = np.unique(
        _codes(respondent, conversation), return_inverse=True, return_counts=True
    )
    return divide(np.ones(len(place)), samples[place].astype(np.float64))
