"""Rewards for reinforcement learning: pure functions of a reply and a row's solution, and adapters for trainers."""
