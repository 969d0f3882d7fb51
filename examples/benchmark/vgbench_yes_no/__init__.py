"""Yes/no questions about relations of things in one image."""
