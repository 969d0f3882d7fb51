"""Settings of the documentation site: `make docs` builds it with Sphinx, MyST and furo.

Why these: Material for MkDocs has announced the end of its maintenance (May 2027), its successor Zensical has not
reached version 1, and Sphinx reads docstrings without a plug-in of another project.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from vgbench_gen import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# Before autodoc imports it: pydantic cannot make a model with further sections while autodoc imports.
importlib.import_module("vgbench_gen.core.gates")

project = "vgbench-gen"
author = "The vgbench-gen authors"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "cli_reference",
    "notebooks",
    "plain_docstrings",
]
exclude_patterns = ["_ext"]
html_theme = "furo"
html_title = f"vgbench-gen {version}"
html_show_sphinx = False
html_copy_source = False

# Anchors of headings are GitHub's, as citations in the code use them; a link that leads nowhere is a warning.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Quotes in docstrings are those of Python.
smartquotes = False
nitpicky = True
# Types in signatures name classes of other packages and of rooms that have no page.
nitpick_ignore_regex = [(r"py:.*", r".*")]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False
# A page is made once for all readers: nothing in it depends on the day.
html_last_updated_fmt = None
suppress_warnings = ["config.cache"]

_ADDRESS = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>")


def _without_addresses(app, what, name, obj, options, signature, returns):  # type: ignore[no-untyped-def]
    """Defaults that print as an address would differ from build to build."""
    return (_ADDRESS.sub("...", signature) if signature else signature), returns


def setup(app):  # type: ignore[no-untyped-def]
    """Register what needs no extension of its own."""
    app.connect("autodoc-process-signature", _without_addresses)
