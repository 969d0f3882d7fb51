"""Other people's benchmarks in our own terms, one file per source."""
