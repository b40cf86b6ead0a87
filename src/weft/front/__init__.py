"""Texts to specs: YAML with positions."""
