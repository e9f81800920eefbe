"""A griffe extension: docstrings as Python people write them, shown as mkdocstrings wants them."""

import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        # griffe knows code under "Examples:" only; a Sphinx role is Markdown's plain code.
        text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
        obj.docstring.value = re.sub(r":(?:class|func|meth|attr|mod):`~?([^`]+)`", r"`\1`", text)
