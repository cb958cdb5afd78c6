"""The plain words of every reason code and figure; one place, no Django."""

from annotation.bootstrap import Estimate

# Why a number, or its interval, is not there. Read after "undefined:" or "no interval:".
REASONS = {
    "no_pairable_units": "no criterion has been answered by two people",
    "no_variation": "everybody gave the same answer everywhere, so chance cannot be told apart",
    "no_met_answers": "nobody answered “met” where two people answered",
    "no_not_met_answers": "nobody answered “not met” where two people answered",
    "no_ratings": "there are no answers yet",
    "too_few_units": "fewer than 10 criteria have been answered by two people",
    "too_few_conversations": "fewer than 5 conversations",
    "degenerate_replicates": "too many of the resampled sets gave no value",
    "no_spread": "every conversation gave the same value",
    "empty_denominator": "there is nothing to count from",
    "no_common_conversations": "the two have no conversation in common",
    "too_little_judged": "less than half of the weight has been judged",
    "no_units": "there is nothing to compare yet",
    "no_met_units": "clinicians found nothing met",
    "no_not_met_units": "clinicians found nothing not met",
    "one_class_only": "clinicians gave only one of the two answers",
    "judge_never_met": "the judge never said “met”",
    "not_computed": "it has not been computed yet",
    "judge_never_not_met": "the judge never said “not met”",
}

# How an interval was made.
METHODS = {
    "percentile": "by resampling whole conversations",
    "jackknife": "by leaving out one conversation at a time",
    "t": "from the spread between conversations",
    "linearised": "from the spread between conversations",
    "exact": "from the number of conversations, as nothing varied",
}

RELIABLE_ALPHA = 0.8
TENTATIVE_ALPHA = 0.667


def reason_words(code: str | None) -> str:
    """Return the plain words of a reason code; an unknown code is shown with spaces."""
    if code is None:
        return ""
    return REASONS.get(code, code.replace("_", " "))


def number(value: float) -> str:
    """Return a coefficient with two decimals and a true minus sign."""
    text = f"{value:.2f}"
    return text.replace("-0.00", "0.00").replace("-", "−")


def percent(share: float | None) -> str:
    """Return a share as a whole percentage; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.0f} %"


def interval_words(estimate: Estimate) -> str:
    """Return an interval in words, or why there is none."""
    if estimate.low is not None and estimate.high is not None:
        return f"{number(estimate.low)} to {number(estimate.high)}"
    if estimate.value is None:
        return ""
    return f"no interval: {reason_words(estimate.reason)}" if estimate.reason else "no interval"


def alpha_words(alpha: Estimate) -> str:
    """Say how far an alpha can be relied on; its lower limit decides (Krippendorff)."""
    if alpha.value is None:
        return reason_words(alpha.reason)
    if alpha.low is None:
        return "how sure this is cannot be said yet"
    if alpha.low >= RELIABLE_ALPHA:
        return "reliable: the lower limit is 0.80 or more"
    if alpha.low >= TENTATIVE_ALPHA:
        return "tentative: the lower limit is under 0.80"
    return "not reliable yet: the lower limit is under 0.67"


def duration_words(seconds: float | None) -> str:
    """Return a length of work in plain words: about 4 minutes."""
    if seconds is None:
        return ""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute"
    if minutes == 1:
        return "about a minute"
    if minutes < 60:
        return f"about {minutes} minutes"
    hours = round(minutes / 60)
    return "about an hour" if hours == 1 else f"about {hours} hours"
