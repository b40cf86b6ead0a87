"""Operations of a project on DataFrames."""
