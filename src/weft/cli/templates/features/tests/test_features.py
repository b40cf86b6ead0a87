"""Check that no feature comes from the future. Type: python -m pytest"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import features as example


def test_features_contain_only_what_was_known_before_the_label():
    features = example.build_features(*example.read_tables(example.start_session()))
    rows = features.order_by("customer", "observed_at").collect()
    assert all(r.changed_at is None or r.changed_at < r.observed_at for r in rows)
    assert all(r.bought_at is None or r.bought_at < r.observed_at for r in rows)
    assert [(r.customer, r.plan, str(r.amount)) for r in rows] == [
        ("ann", "basic", "5.00"),
        ("ann", "premium", "None"),  # her last purchase is 32 days old
        ("bob", None, "None"),  # his plan starts at the very moment of the label
        ("cid", None, "None"),  # the purchase comes after the label
    ]
