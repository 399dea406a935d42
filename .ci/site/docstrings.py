"""Extension of griffe: docstrings for Sphinx as Markdown, with links between the names of the package."""

import re

import griffe

ROLE = re.compile(r":(?:class|func|meth):`(\w+)`")
TABLE = re.compile(r"^=+(?: =+)+\n(?P<head>.*)\n(?P<rule>=+(?: =+)+)\n(?P<rows>(?:.*\n)*?)=+(?: =+)+$", re.MULTILINE)


class Docstrings(griffe.Extension):
    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            text = TABLE.sub(table, obj.docstring.value)
            obj.docstring.value = ROLE.sub(lambda match: link(match[1], obj), text)


def link(name, obj):
    """Return a link to a name of the package, or to a method of the class."""
    owner = obj if obj.is_class else obj.parent
    target = f"miplc.{owner.name}.{name}" if owner.is_class and name in owner.all_members else f"miplc.{name}"
    return f"[`{name}`][{target}]"


def table(match):
    """Return a simple table of reStructuredText as a table of Markdown."""
    columns = [m.span() for m in re.finditer("=+", match["rule"])]
    columns[-1] = (columns[-1][0], None)
    rows = []
    for line in [match["head"], *match["rows"].splitlines()]:
        cells = [line[start:end].strip() for start, end in columns]
        if cells[0]:
            rows.append(cells)
        else:  # the row goes on
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells)]
    rows.insert(1, ["---"] * len(columns))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
