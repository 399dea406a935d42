"""Results of the program as pandas frames. pandas is imported only here."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def frame(rows: Sequence[Mapping[str, Any]]) -> pandas.DataFrame:
    """Return a frame with one row for each mapping."""
    found: pandas.DataFrame = import_pandas().DataFrame(list(rows))
    return found


def read_csv(path: Path) -> pandas.DataFrame:
    """Read a table of the program, in which NA may be the name of a class."""
    table: pandas.DataFrame = import_pandas().read_csv(path, keep_default_na=False, na_values=[""])
    return table


def import_pandas() -> Any:
    """Return the module pandas, or raise an ImportError with advice if it is not installed."""
    try:
        import pandas
    except ModuleNotFoundError as err:
        raise ImportError("frames need pandas: pip install pandas") from err
    return pandas


def flat_metrics(epoch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of an epoch without nested objects, such as ``test_auroc`` and ``term_attention``."""
    row = {key: value for key, value in epoch.items() if key not in ("terms", "measures")}
    row.update((f"term_{name}", value) for name, value in (epoch.get("terms") or {}).items())
    for part, measures in (epoch.get("measures") or {}).items():
        row.update((f"{part}_{name}", value) for name, value in measures.items())
    return row


def markdown_tables(text: str) -> dict[str, pandas.DataFrame]:
    """Return the tables of a report in Markdown, by title, as frames of texts. ``group`` is the group of a row."""
    tables: dict[str, pandas.DataFrame] = {}
    title, lines = "", text.splitlines()
    for i, line in enumerate(lines):
        if found := re.match(r"\*\*Table \d+\.\*\* (.*)", line):
            title = html.unescape(re.sub(r"\\(.)", r"\1", found[1]))
        elif line.startswith("|--"):
            names, group, rows = _cells(lines[i - 1]), "", []
            for row in itertools.takewhile(lambda line: line.startswith("|"), lines[i + 1 :]):
                cells = _cells(row)
                if re.fullmatch(r"\*.+\*", cells[0]) and not any(cells[1:]):
                    group = cells[0][1:-1]
                else:
                    rows.append({"group": group} | dict(zip(names, cells)))
            found_table = frame(rows)
            tables[title] = found_table if group else found_table.drop(columns="group")
    return tables


def _cells(row: str) -> list[str]:
    """Return the texts of a row of a table in Markdown, without its bold type."""
    cells = re.split(r"(?<!\\)\|", row.strip())[1:-1]
    plain = [re.sub(r"(?<!\\)\*\*", "", cell.strip()) for cell in cells]
    return [html.unescape(re.sub(r"\\(.)", r"\1", cell)) for cell in plain]
