"""What a running stream keeps on disk: the checkpoint, its commits, its ledger and its rejected rows."""
