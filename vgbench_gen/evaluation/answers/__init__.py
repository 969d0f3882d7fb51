"""Reading replies: what a model answered, or why nothing can be said; words to look for stand in `vocabulary.toml`."""
