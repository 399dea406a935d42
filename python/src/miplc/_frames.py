"""Makes pandas frames of the program's results. pandas is imported only here and in readers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def frame(rows: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    """Return a frame with one row for each mapping."""
    _require_pandas()
    import pandas

    return pandas.DataFrame(list(rows))


def read_csv(path: Path) -> pandas.DataFrame:
    """Read a table of the program, in which NA may be the name of a class."""
    _require_pandas()
    import pandas

    return pandas.read_csv(path, keep_default_na=False, na_values=[""])


def _require_pandas() -> None:
    if importlib.util.find_spec("pandas") is None:
        raise ImportError("frames need pandas: pip install pandas")


def flat_metrics(epoch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of an epoch without nested objects.

    The measure auroc of the test bags becomes ``test_auroc``, the loss term attention
    ``term_attention``.
    """
    row = {key: value for key, value in epoch.items() if key not in ("terms", "measures")}
    row.update((f"term_{name}", value) for name, value in (epoch.get("terms") or {}).items())
    for part, measures in (epoch.get("measures") or {}).items():
        row.update((f"{part}_{name}", value) for name, value in measures.items())
    return row


def table_frame(table: Mapping[str, Any]) -> pandas.DataFrame:
    """Return a table of a report as a frame of texts, with the marks of the report."""
    names = [" ".join(dict.fromkeys(column)) for column in zip(*_heads(table["head"]))]
    group, rows = "", []
    for row in table["rows"]:
        group = row.get("group", group)
        if row.get("cells"):
            rows.append({"group": group} | dict(zip(names, (_text(cell) for cell in row["cells"]))))
    found = frame(rows)
    return found if group else found.drop(columns="group", errors="ignore")


def _heads(lines: Iterable[Sequence[Mapping[str, Any]]]) -> list[list[str]]:
    """Return the lines of a heading with one text for each column."""
    found: list[list[str]] = []
    for line in lines:
        texts: list[str] = []
        for entry in line:
            texts += [entry["text"]] * entry["span"]
        if found:  # an entry that a higher one covers
            texts = [text or above for text, above in zip(texts, found[-1])]
        found.append(texts)
    return found


def _text(cell: Any) -> str:
    return str(cell.get("text", "")) if isinstance(cell, Mapping) else str(cell)
