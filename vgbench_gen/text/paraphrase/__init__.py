"""Rewording by a language model, with checks that refuse whatever could change an answer.

`rules` reads the vocabulary, `checks` and `kept` compare a rewording with its original, `prompts` asks and reads
replies, `rounds` takes one text through asking, checking and judging, `templates` rewords the shipped phrasings into a
bank, and `filled` prepares the texts of a dataset.
"""
