"""The five operations on DataFrames."""
