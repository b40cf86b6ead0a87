"""DataFrames as staged data."""
