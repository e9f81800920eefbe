"""An mkdocs hook: the page of methods is generated from the registry, so that a new method needs no edit."""

import inspect
from typing import Any

MARK = "<!-- every registered method -->"


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    return markdown.replace(MARK, every_method()) if MARK in markdown else markdown


def every_method() -> str:
    from mario.methods import REGISTRY

    rows = ["| method | class | learns from labels | embeds | recipe |", "|---|---|---|---|---|"]
    sections = []
    for name, cls in sorted(REGISTRY.items()):
        host = f"`{name}+mario`" if getattr(cls, "host", False) and name != "grace" else ""
        recipe = "`mario`" if name == "grace" else host
        labels = "yes" if cls.supervised else "no"
        rows.append(f"| [`{name}`](#{name}) | `{cls.__name__}` | {labels} | {', '.join(cls.levels)} | {recipe} |")
        sections.append(_section(name, cls))
    return "\n".join(rows) + "\n\n" + "\n\n".join(sections)


def _section(name: str, cls: Any) -> str:
    lines = [f"## {cls.__name__} {{ #{name} }}", "", f"`mario run DATASET --method {name}`", ""]
    lines += [f"::: {inspect.getmodule(cls).__name__}.{cls.__name__}"]
    lines += ["    options:", "      heading_level: 3", "      show_root_toc_entry: false", "      members: false"]
    lines += ["", "| setting | default | search range or choices | what |", "|---|---|---|---|"]
    own = {field for parent in cls.__mro__ for field in vars(parent).get("__annotations__", {}) if _is_own(parent)}
    for field in cls.fields():
        if field.name in own:
            among = ", ".join(map(str, field.metadata.get("search") or field.metadata.get("choices") or []))
            lines.append(f"| `{field.name}` | {field.default} | {among} | {field.metadata['help']} |")
    if not own:
        lines = lines[:-3]
    return "\n".join(lines)


def _is_own(parent: type) -> bool:
    """Settings that all methods have are listed once, under `Method`."""
    return parent.__module__.startswith("mario.") and parent.__name__ != "Method"
