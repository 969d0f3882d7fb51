"""Solvers that see: classical computer vision that answers built questions from what a model is shown.

The rule of this room: a solver gets a `Seen`, which holds the delivered images (with every mark drawn on them) and the
printed text, and nothing else. All numbers are read back from that text. `seen.look` makes it from a `Question`
without its key, so that neither the truth nor evidence that is not printed (depth, poses, the unrounded K) can reach a
solver. Nothing here learns, and everything runs on the CPU.

What they are for (`docs/validity.md#solvers`): a task whose solver answers most questions can be answered from its
pixels; the same solver on another question's images must guess; and a rule that understands nothing must guess too.
Depth, distances and box locations in metres have no classical solver from one image without learning; what is reported
for them are cues and rules that need no solver.
"""
