"""Human verification: who is asked what, what they said, whether they agree; no web here.

Reasons and values: `docs/validity.md#review-by-people`.
"""
