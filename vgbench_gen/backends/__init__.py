"""Anything that answers a prompt: hosted models, local ones, and scripts that play one."""
