"""The join as a value: what a user asks for, resolved against two schemas, planned, explained and run."""
