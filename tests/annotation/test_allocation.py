"""Everybody gets the items of a round in an order of their own, with conversations spread out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.allocation import own_order

pytestmark = pytest.mark.no_database

rounds = st.dictionaries(st.integers(1, 10_000), st.integers(1, 12), max_size=60).map(
    lambda items: sorted(items.items())
)


@given(rounds, st.integers(0, 2**31), st.text(max_size=12), st.randoms())
def test_the_order_holds_each_item_once_however_the_items_come(items, seed, name, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    order = own_order(seed, name, items)
    assert sorted(order) == [item for item, _ in items]
    assert own_order(seed, name, shuffled) == order


def test_annotators_and_seeds_have_orders_of_their_own():
    items = [(n, n) for n in range(100)]
    orders = {
        tuple(own_order(seed, name, items)) for seed in range(3) for name in ("ada", "ben", "cleo")
    }
    assert len(orders) == 9


def test_no_item_is_favoured():
    items = [(n, n % 3) for n in range(9)]
    first = [own_order(0, f"annotator-{n}", items)[0] for n in range(900)]
    # 100 each is expected; 5 standard deviations of a binomial(900, 1/9) are 47.
    assert all(53 <= first.count(item) <= 147 for item in range(9))


def test_replies_to_one_conversation_rarely_follow_each_other():
    conversation_of = {n: n // 5 for n in range(100)}
    neighbours = together = 0
    for n in range(50):
        order = own_order(n, "ada", list(conversation_of.items()))
        pairs = list(zip(order, order[1:], strict=False))
        neighbours += len(pairs)
        together += sum(conversation_of[a] == conversation_of[b] for a, b in pairs)
    # By chance alone 4 of 99 neighbours would share a conversation.
    assert together / neighbours < 0.01


@given(st.integers(0, 2**31), st.integers(2, 8), st.integers(2, 8))
def test_each_part_of_the_order_has_its_share_of_every_conversation(seed, conversations, replies):
    items = [(c * 100 + r, c) for c in range(conversations) for r in range(replies)]
    order = own_order(seed, "ada", items)
    for conversation in range(conversations):
        places = [place for place, item in enumerate(order) if item // 100 == conversation]
        gaps = [b - a for a, b in zip(places, places[1:], strict=False)]
        # Between two of its replies at most two of each other conversation fit.
        assert max(gaps) <= 2 * (conversations - 1) + 1
