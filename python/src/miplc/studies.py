"""Experiments, reports, generated datasets and the list of shipped specs, which the program computes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _frames, _process
from ._labels import count
from .bags import Bags
from .errors import SpecError
from .training import Spec, spec_argument

if TYPE_CHECKING:
    import pandas


@dataclass(repr=False)
class Report:
    """Tables and figures of an experiment.

    Attributes
    ----------
    results : pandas.DataFrame
        One row for each cell, a training of a learner on a split, with all measures.
    tables : dict of pandas.DataFrame
        The tables of the report by their titles, as texts with the marks of significance.
    html : str
        The report as one page.
    markdown : str
        The report as Markdown.
    figures : dict of str
        Figures as SVG text, by name.
    """

    results: pandas.DataFrame
    tables: dict[str, pandas.DataFrame]
    html: str
    markdown: str
    figures: dict[str, str]

    def __repr__(self) -> str:
        tables = "".join(f"\n  {title[:100]}" for title in self.tables)
        return f"<Report: {count(len(self.results), 'result')}, {count(len(self.figures), 'figure')}, tables{tables}>"

    def _repr_html_(self) -> str:
        """Show the tables and figures in a notebook."""
        tables = [f"<h4>{t}</h4>{f.to_html(index=False)}" for t, f in self.tables.items()]
        return "".join(tables) + "".join(self.figures.values())


def experiment(
    definition: Spec,
    *,
    output: str | os.PathLike[str] | None = None,
    data: Mapping[str, Bags] | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: bool = True,
    **options: Any,
) -> Report:
    """Compare learners over datasets and splits, as the command ``miplc experiment``.

    Parameters
    ----------
    definition : str, path or dict
        A shipped experiment by its name, the path of a YAML file, YAML text, or a dict.
    output : path, optional
        Folder of the results. The same call continues after an interruption. Default: a temporary folder.
    data : dict of Bags, optional
        Datasets by name, in addition to those of a definition that is a dict.
    settings : dict, optional
        Values of the file, such as ``{"splits.count": 3}``.
    progress : bool
        Show a progress bar, if tqdm is installed.
    **options
        Options of the command, such as ``jobs=2`` or ``splits=3``.
    """
    names: dict[str, str] = {}
    with _process.temporary_folder() as folder:
        if data:
            if not isinstance(definition, Mapping):
                raise SpecError("data needs a definition that is a dict; name files in others")
            written = _write(data, definition, folder)
            for i, (name, entry) in enumerate(zip(data, written), len(definition.get("data", ()))):
                names[entry["file"]] = names[f'definition["data"][{i}]'] = f"data[{name!r}]"
            definition = {**definition, "data": [*definition.get("data", ()), *written]}
        results = folder / "results" if output is None else _process.located(output, "output")
        args = ["experiment", spec_argument(definition, folder, "experiment.yaml"), "-o", str(results)]
        if data:
            args += ["--data-dir", str(folder)]
        for key, value in (settings or {}).items():
            args += ["--set", _process.setting(key, value)]

        def cell(line: Mapping[str, Any]) -> dict[str, Any]:
            return {"accuracy": line["result"].get("accuracy")}

        _process.follow([*args, *_process.options(**options)], progress, "cell", cell, folder, names)
        return report(results)


def _write(data: Mapping[str, Bags], definition: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Write datasets and return their entries in the file of an experiment."""
    entries = []
    for number, (name, bags) in enumerate(data.items(), 1):
        file = f"bags-of-python-{number}.npz"
        bags.write(folder / file)
        entry: dict[str, Any] = {"name": name, "file": file}
        if bags.kind != "candidates":
            entry["labels"] = bags.kind
        if bags.groups is not None:
            entry["splits"] = {**definition.get("splits", {}), "group": bags.group_name}
        entries.append(entry)
    return entries


def report(
    folder: str | os.PathLike[str],
    *,
    measure: str | Sequence[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Report:
    """Report an experiment, finished or not, as the command ``miplc report``.

    Parameters
    ----------
    folder : path
        Folder of the experiment.
    measure : str or sequence of str, optional
        Measures of the tables. Default: accuracy.
    output : path, optional
        Folder of the report. Default: a temporary one.
    **options
        Options of the command, such as ``test="paired"``.
    """
    with _process.temporary_folder() as temporary:
        to = temporary / "report" if output is None else _process.located(output, "output")
        args = ["report", str(_process.located(folder, "the folder")), "-o", str(to)]
        names = [measure] if isinstance(measure, str) else measure
        args += _process.options(measure=None if names is None else list(names), **options)
        _process.call(*args, hide=temporary)
        markdown = (to / "report.md").read_text("utf-8")
        return Report(
            results=_frames.read_csv(to / "results.csv"),
            tables=_frames.markdown_tables(markdown),
            html=(to / "report.html").read_text("utf-8"),
            markdown=markdown,
            figures={p.stem: p.read_text("utf-8") for p in sorted((to / "figures").glob("*.svg"))},
        )


def synth(name: str = "prototypes", **options: Any) -> Bags:
    """Generate a dataset, as the command ``miplc data synth``.

    Parameters
    ----------
    name : str
        ``prototypes``, or a set that is drawn from the files in the folder ``source``.
    **options
        Options of the command, such as ``bags=200, features=4, noise=0.5, r=1, classes=["cat", "dog", "horse"]``.
    """
    with _process.temporary_folder() as folder:
        path = folder / "bags.npz"
        args = _process.options(**options)
        _process.call("data", "synth", name, "-o", str(path), *args, hide=folder)
        return Bags.read(path)


def specs() -> pandas.DataFrame:
    """Return the ``name`` and the ``description`` of each shipped spec."""
    return _frames.frame(_process.call("specs")["specs"])
