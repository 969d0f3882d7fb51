"""Models that answer prompts: hosted ones, local ones, and scripted replies for tests."""
