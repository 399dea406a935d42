"""The rules of the program for the names of columns and for missing values. Its tests write _rules.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RULES: dict[str, Any] = json.loads(Path(__file__).with_name("_rules.json").read_text("utf-8"))
_LEFT_OUT = str.maketrans("", "", RULES["ignored_in_names"])


def missing_mark(text: str) -> bool:
    """Report whether programs write a missing value as this text."""
    return text.lower() == "nan" or text in RULES["missing_marks"]


def suspect(name: str) -> bool:
    """Report whether a column is named like an identifier or a coordinate."""
    lower = name.strip().lower()
    plain = lower.translate(_LEFT_OUT)
    return (
        plain in RULES["suspect_names"]
        or plain in RULES["suspect_columns"]
        or lower.startswith(tuple(RULES["suspect_prefixes"]))
        or lower.endswith(tuple(RULES["suspect_suffixes"]))
    )
