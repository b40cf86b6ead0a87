"""Numbered changes of the store's schema."""
