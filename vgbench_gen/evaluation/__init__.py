"""Answers of models: replies read, scored and compared; what was asked comes from a dataset, never from a scene."""
