"""Words and printed numbers: templates filled strictly, numbers printed once and read back, texts linted."""
