"""The built-in baseline judge: TF-IDF and logistic regression, conversations whole across folds.

It is an honest lower bound. Training leaves a JSON artifact with one model per fold and one on
all training conversations; a conversation that was in training is judged by the fold that left it
out, so that no verdict is about a conversation that its model has seen.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Artifact = dict[str, Any]
Vector = dict[int, float]

FORMAT = "tf-idf + logistic regression, 1"
THRESHOLD = 0.5
DECIMALS = 6
LEAVE_ONE_OUT_BELOW = 10
FOLDS = 5
MINIMUM_CONVERSATIONS = 2
OVERLAPS = 4

_WORD = re.compile(r"\w\w+")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")


class TrainingError(ValueError):
    """The training labels cannot make a judge; the message says why."""


class ArtifactError(ValueError):
    """A stored artifact is not one that this code can read."""


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """All that can change what training leaves behind; part of the judge's digest."""

    reply_features: int = 800
    criterion_features: int = 400
    inverse_regularisation: float = 2.0
    balanced: bool = True
    iterations: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled unit: the conversation's key, the two texts, the consensus."""

    conversation: str
    criterion: str
    reply: str
    met: bool


DEFAULTS = Hyperparameters()


def terms(text: str) -> list[str]:
    """Return the words and pairs of neighbouring words of a text, in lower case."""
    words = _WORD.findall(text.lower())
    return words + [f"{a} {b}" for a, b in zip(words, words[1:], strict=False)]


def assign_folds(conversations: Iterable[str], seed: int) -> dict[str, int]:
    """Put each conversation into one fold: min(5, K) folds, leave-one-out below 10.

    The order is that of a hash of seed and key, so that it depends on nothing else.
    """
    keys = sorted(set(conversations), key=lambda key: (_hash(seed, key), key))
    count = len(keys) if len(keys) < LEAVE_ONE_OUT_BELOW else FOLDS
    return {key: place % count for place, key in enumerate(keys)}


def train(examples: Sequence[Example], parameters: Hyperparameters = DEFAULTS) -> Artifact:
    """Return the artifact of a judge trained on these examples.

    The same examples in any order give the same artifact. A fold whose remaining examples have
    one answer only gets a model that gives this answer's share, whatever the text.
    """
    rows = sorted(examples, key=lambda e: (e.conversation, e.criterion, e.reply, e.met))
    conversations = {row.conversation for row in rows}
    if len(conversations) < MINIMUM_CONVERSATIONS:
        raise TrainingError(
            f"Training needs agreed labels of at least {MINIMUM_CONVERSATIONS} conversations;"
            f" there are {len(conversations)}."
        )
    if len({row.met for row in rows}) < 2:
        only = "met" if rows[0].met else "not met"
        raise TrainingError(f"Every agreed training label is “{only}”; training needs both.")
    folds = assign_folds(conversations, parameters.seed)
    models = [
        _fit([row for row in rows if folds[row.conversation] != fold], parameters)
        for fold in range(max(folds.values()) + 1)
    ]
    return {
        "format": FORMAT,
        "hyperparameters": asdict(parameters),
        "folds": folds,
        "models": models,
        "full": _fit(rows, parameters),
    }


class Predictor:
    """A trained baseline, read from its artifact; needs no library but numpy."""

    def __init__(self, artifact: Mapping[str, Any] | None) -> None:
        if not artifact or artifact.get("format") != FORMAT:
            raise ArtifactError("The judge has no artifact that this program can read.")
        try:
            self._folds: dict[str, int] = dict(artifact["folds"])
            self._models = [_Model(model) for model in artifact["models"]]
            self._full = _Model(artifact["full"])
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"The judge's artifact is damaged: {error!r}.") from error
        if any(not 0 <= fold < len(self._models) for fold in self._folds.values()):
            raise ArtifactError("The judge's artifact names a fold that it does not have.")

    def was_trained_on(self, conversation: str) -> bool:
        """Tell whether a conversation's labels were in training."""
        return conversation in self._folds

    def probabilities(self, conversation: str, reply: str, criteria: Sequence[str]) -> FloatArray:
        """Return the probability that each criterion is met; shape (criteria,), range 0..1."""
        fold = self._folds.get(conversation)
        model = self._full if fold is None else self._models[fold]
        return model.probabilities(reply, criteria)


class _Vectoriser:
    """Inverse document frequencies over a vocabulary; rows have length 1."""

    def __init__(self, vocabulary: Sequence[str], idf: Sequence[float]) -> None:
        if len(vocabulary) != len(idf):
            raise ValueError("vocabulary and idf have different lengths")
        self.vocabulary = list(vocabulary)
        self.idf = [float(value) for value in idf]
        self._index = {term: place for place, term in enumerate(self.vocabulary)}

    @classmethod
    def fit(cls, texts: Iterable[str], size: int) -> "_Vectoriser":
        counts: Counter[str] = Counter()
        total = 0
        for text in set(texts):
            counts.update(set(terms(text)))
            total += 1
        # A term of one text says nothing about another; few texts have nothing else.
        frequent = [term for term, count in counts.items() if count > 1] or list(counts)
        chosen = sorted(sorted(frequent, key=lambda term: (-counts[term], term))[:size])
        idf = [round(math.log((1 + total) / (1 + counts[t])) + 1, DECIMALS) for t in chosen]
        return cls(chosen, idf)

    def vector(self, text: str) -> Vector:
        counts = Counter(self._index[term] for term in terms(text) if term in self._index)
        weighted = {place: count * self.idf[place] for place, count in sorted(counts.items())}
        length = math.sqrt(sum(value * value for value in weighted.values()))
        return {place: value / length for place, value in weighted.items()} if length else {}


class _Model:
    """One fitted fold."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._intercept = float(stored["intercept"])
        self._reply = _Vectoriser(stored["reply"]["terms"], stored["reply"]["idf"])
        self._criterion = _Vectoriser(stored["criterion"]["terms"], stored["criterion"]["idf"])
        self._of_reply = [float(value) for value in stored["reply"]["coefficients"]]
        self._of_criterion = [float(value) for value in stored["criterion"]["coefficients"]]
        self._of_overlap = [float(value) for value in stored["overlap"]]

    def probabilities(self, reply: str, criteria: Sequence[str]) -> FloatArray:
        words = _ReplyWords(reply)
        of_reply = _dot(self._reply.vector(reply), self._of_reply)
        logits = [
            self._intercept
            + of_reply
            + _dot(self._criterion.vector(criterion), self._of_criterion)
            + sum(
                value * weight
                for value, weight in zip(words.overlap(criterion), self._of_overlap, strict=False)
            )
            for criterion in criteria
        ]
        # Far logits would overflow exp without changing the answer.
        return 1 / (1 + np.exp(-np.clip(np.array(logits, dtype=np.float64), -60, 60)))


class _ReplyWords:
    """What the overlap of a reply with criteria needs, counted once per reply."""

    def __init__(self, reply: str) -> None:
        self._all = Counter(_WORD.findall(reply.lower()))
        sentences = [part for part in _SENTENCE.split(reply) if part.strip()]
        self._sentences = [Counter(_WORD.findall(part.lower())) for part in sentences]
        self._length = math.log1p(sum(self._all.values())) / 10

    def overlap(self, criterion: str) -> list[float]:
        """Return cosine, best cosine of a sentence, share of words found, length of the reply."""
        own = Counter(_WORD.findall(criterion.lower()))
        found = sum(1 for word in own if word in self._all)
        return [
            _cosine(own, self._all),
            max((_cosine(own, sentence) for sentence in self._sentences), default=0.0),
            found / len(own) if own else 0.0,
            self._length,
        ]


def _fit(rows: Sequence[Example], parameters: Hyperparameters) -> dict[str, Any]:
    reply = _Vectoriser.fit((row.reply for row in rows), parameters.reply_features)
    criterion = _Vectoriser.fit((row.criterion for row in rows), parameters.criterion_features)
    met = np.array([row.met for row in rows], dtype=np.bool_)
    sizes = (len(reply.vocabulary), len(criterion.vocabulary))
    if met.all() or not met.any():
        share = (met.sum() + 0.5) / (len(met) + 1)
        coefficients = np.zeros(sum(sizes) + OVERLAPS)
        intercept = float(np.log(share / (1 - share)))
    else:
        coefficients, intercept = _regress(_features(rows, reply, criterion), met, parameters)
    rounded = [round(float(value), DECIMALS) for value in coefficients]
    return {
        "intercept": round(intercept, DECIMALS),
        "reply": _stored(reply, rounded[: sizes[0]]),
        "criterion": _stored(criterion, rounded[sizes[0] : sum(sizes)]),
        "overlap": rounded[sum(sizes) :],
    }


def _stored(vectoriser: _Vectoriser, coefficients: list[float]) -> dict[str, Any]:
    return {
        "terms": vectoriser.vocabulary,
        "idf": vectoriser.idf,
        "coefficients": coefficients,
    }


def _features(rows: Sequence[Example], reply: _Vectoriser, criterion: _Vectoriser) -> Any:
    from scipy import sparse

    # A reply and a criterion stand in many rows and are read once.
    replies = {text: reply.vector(text) for text in {row.reply for row in rows}}
    words = {text: _ReplyWords(text) for text in replies}
    criteria = {text: criterion.vector(text) for text in {row.criterion for row in rows}}
    first, second = len(reply.vocabulary), len(criterion.vocabulary)
    values: list[float] = []
    columns: list[int] = []
    starts = [0]
    for row in rows:
        overlap = words[row.reply].overlap(row.criterion)
        parts = (
            (0, replies[row.reply].items()),
            (first, criteria[row.criterion].items()),
            (first + second, enumerate(overlap)),
        )
        for offset, part in parts:
            for place, value in part:
                columns.append(offset + place)
                values.append(value)
        starts.append(len(values))
    shape = (len(rows), first + second + OVERLAPS)
    return sparse.csr_matrix((values, columns, starts), shape=shape)


def _regress(
    features: Any, met: NDArray[np.bool_], parameters: Hyperparameters
) -> tuple[FloatArray, float]:
    # Imported here: only training needs it, and it would slow the start of every command.
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=parameters.inverse_regularisation,
        class_weight="balanced" if parameters.balanced else None,
        max_iter=parameters.iterations,
        random_state=parameters.seed,
        solver="lbfgs",
    )
    model.fit(features, met)
    return model.coef_[0], float(model.intercept_[0])


def _dot(vector: Vector, coefficients: Sequence[float]) -> float:
    return sum(value * coefficients[place] for place, value in vector.items())


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    if not a or not b:
        return 0.0
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    shared = sum(count * large[word] for word, count in small.items() if word in large)
    if not shared:
        return 0.0
    lengths = sum(c * c for c in a.values()) * sum(c * c for c in b.values())
    return shared / math.sqrt(lengths)


def _hash(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed}:{key}".encode()).hexdigest()
