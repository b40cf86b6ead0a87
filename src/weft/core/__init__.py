"""Small words: types, names, durations, periods, places in text, fingerprints."""
