"""Operations on Spark: each takes the working set and returns it changed."""
