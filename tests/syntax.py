"""The nodes of source files, for tests that read all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that `ast.walk` yields but contexts and operators, which hold no name and no text; in half the time."""
    waiting = [tree]
    for node in waiting:
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if value.__class__ is list:
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _BARE):
                waiting.append(value)


_BARE = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)
