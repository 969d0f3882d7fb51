"""Pages that are notebooks: their words as they are, their code as blocks; git keeps no outputs to show."""

from __future__ import annotations

import json
from typing import Any


def make_markdown(notebook: str) -> str:
    """The Markdown of a notebook's JSON."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def setup(app: Any) -> dict[str, bool]:
    """Register the suffix and its parser."""
    from myst_parser.parsers.sphinx_ import MystParser

    class NotebookParser(MystParser):
        """Reads a notebook as the Markdown that it stands for."""

        supported = ("ipynb",)

        def parse(self, inputstring: str, document: Any) -> None:
            super().parse(make_markdown(inputstring), document)

    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
