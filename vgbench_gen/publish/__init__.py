"""From a dataset on disk to one that others can load, and back."""
