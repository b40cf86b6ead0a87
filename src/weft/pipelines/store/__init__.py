"""Runs, snapshots, versions and locks."""
