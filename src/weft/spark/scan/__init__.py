"""Data of a workspace as DataFrames."""
