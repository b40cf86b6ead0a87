"""Planning of streaming SQL: a job becomes statements with joins, bounds, clocks and state."""
