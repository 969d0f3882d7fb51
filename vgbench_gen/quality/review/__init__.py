"""Human verification (`benchmark-validity` 3.9): who is asked what, what they said, whether they agree; no web here."""
