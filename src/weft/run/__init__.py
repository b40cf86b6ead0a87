"""Plans carried out."""
