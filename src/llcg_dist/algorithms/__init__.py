"""One short file per method; each says only what differs from plain parameter averaging."""
