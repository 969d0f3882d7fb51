"""Training data: coordinates of model families, rationales, mixtures, difficulty, canaries, and a lint of files."""
