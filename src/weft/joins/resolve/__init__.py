"""A requested join and two schemas in, a resolved join out; every strict check is here."""
