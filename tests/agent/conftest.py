"""Shared with tests of the program."""

from tests.agent.cores import without_processes

__all__ = ["without_processes"]
