"""Test the join on its sample data. Type: python -m pytest"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import trades as example


def test_each_trade_has_the_latest_quote_of_the_last_five_seconds():
    spark = example.start_session()
    trades = example.read(spark, "trades.csv", "symbol string, at timestamp_ntz, quantity int")
    quotes = example.read(spark, "quotes.csv", "symbol string, quoted timestamp_ntz, price decimal(10,2)")
    rows = example.price_trades(trades, quotes).order_by("at").collect()
    assert [(r.symbol, str(r.price)) for r in rows] == [
        ("AAPL", "189.10"),
        ("MSFT", "None"),  # its last quote is 34 seconds old
        ("NFLX", "None"),  # it has no quote
        ("AAPL", "190.20"),
    ]
