"""Training of specs with the program, and the folders of runs."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _frames, _process
from .bags import Bags
from .errors import DataError, FindingWarning, SpecError
from .model import Model
from .tuning import Search, search_arguments

if TYPE_CHECKING:
    import pandas

Spec = str | os.PathLike[str] | Mapping[str, Any]
"""A shipped spec by its name, the path of a YAML file, YAML text of several lines, or a dict."""

Callback = Callable[[Mapping[str, Any]], object]
"""A function of the metrics of an epoch: ``epoch``, ``loss``, ``lr``, ``train_accuracy``,
``test_accuracy``, ``measures`` of each part of the split, ..., as in ``metrics.jsonl``."""

DATA_FILE = "bags-of-python.npz"  # found by --data-dir; no file of the user has this name


@dataclass
class Run:
    """A finished training.

    Attributes
    ----------
    folder : Path or None
        Folder of the run. None if it was temporary: then everything is in memory.
    summary : dict
        Final metrics, and the versions of the software: ``summary.json``.
    epochs : list of dict
        Metrics of each epoch: ``metrics.jsonl``.
    model : Model
        The exported model.
    plots : dict of str
        Figures of the training as SVG text, by name: ``loss``, ``attention``, ...
    split : dict
        Numbers of the bags of each part, counted from 1: ``split.json``.
    spec : str
        The complete spec as YAML.
    search : Search or None
        The trials of the search that chose the settings.
    """

    folder: Path | None
    summary: dict[str, Any]
    epochs: list[dict[str, Any]]
    model: Model
    plots: dict[str, str]
    split: dict[str, Any]
    spec: str
    search: Search | None = None

    @classmethod
    def read(cls, folder: str | os.PathLike[str], *, keep: bool = True) -> Run:
        """Read the folder of a finished run. If not ``keep``, the folder will be removed."""
        at = _process.located(folder, "the folder", DataError)
        try:
            summary = json.loads((at / "summary.json").read_text("utf-8"))
            lines = (at / "metrics.jsonl").read_text("utf-8").splitlines()
            split = json.loads((at / "split.json").read_text("utf-8"))
            spec = (at / "spec.yaml").read_text("utf-8")
            plots = {p.stem: p.read_text("utf-8") for p in sorted((at / "plots").glob("*.svg"))}
        except (OSError, ValueError) as err:
            text = f"there is no finished run: {err}"
            if isinstance(err, FileNotFoundError):
                text = f"there is no finished run: {Path(err.filename).name} is missing"
            raise DataError(text, file=str(at)) from err
        model = Model(at / "model.onnx")
        if not keep:
            model.path = None
        epochs = [json.loads(line) for line in lines]
        search = Search.read(at) if (at / "search" / "search.json").exists() else None
        return cls(at if keep else None, summary, epochs, model, plots, split, spec, search)

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the test bags; None without test bags or true labels."""
        return self.summary.get("accuracy")

    @property
    def measures(self) -> dict[str, dict[str, float]]:
        """Measures of the exported model, by part of the split."""
        return self.summary["measures"] or {}

    @property
    def findings(self) -> list[str]:
        """What the program noticed about the results, each with advice."""
        found = self.summary.get("findings") or ()
        return [": ".join(one[key] for key in ("text", "advice") if one.get(key)) for one in found]

    @cached_property
    def history(self) -> pandas.DataFrame:
        """Frame with one row for each epoch: ``loss``, ``test_accuracy``, ``test_auroc``, ..."""
        return _frames.frame([_frames.flat_metrics(epoch) for epoch in self.epochs])

    def __repr__(self) -> str:
        test = "" if self.accuracy is None else f", test accuracy {self.accuracy:.4f}"
        return f"<Run {self.summary['name']}: {self.summary['epochs']} epochs{test}>"

    def _repr_html_(self) -> str:
        """Show the summary and the figures in a notebook."""
        rows = [
            ("model", f"{self.summary['name']}, {self.summary['parameters']} parameters"),
            ("test accuracy", self.accuracy),
            ("training accuracy", self.summary.get("train_accuracy")),
            ("loss", self.summary["loss"]),
            ("folder", self.folder),
            *(("finding", text) for text in self.findings),
        ]
        cells = [
            f"<tr><th>{name}</th><td>{f'{v:.4f}' if isinstance(v, float) else html.escape(str(v))}</td></tr>"
            for name, v in rows
            if v is not None
        ]
        searched = "" if self.search is None else self.search._repr_html_()
        return f"<table>{''.join(cells)}</table>" + "".join(self.plots.values()) + searched


def train(
    spec: Spec,
    bags: Bags | str | os.PathLike[str] | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    search: bool | int | Mapping[str, Any] | None = None,
    seed: int | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool = True,
    resume: bool = False,
    overwrite: bool = False,
    engine: str | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Run:
    """Train a model, as the command ``miplc train``.

    Parameters
    ----------
    spec : str, path or dict
        A shipped spec by its name (see :func:`specs`), a YAML file, YAML text of several lines, or a dict.
    bags : Bags or path, optional
        The dataset. Default: that of the spec. Groups of the bags are not divided by the split.
    output : path, optional
        Folder of the run. Default: a temporary folder, whose files are in the result.
    settings : dict, optional
        Settings of the spec, such as ``{"train.epochs": 50, "data.split.train": 1}``. None: the value of the spec.
    search : bool, int or dict, optional
        Try settings on held-out training bags first, and train with the best ones: True, a number of trials, or a dict
        with ``trials``, ``budget`` (seconds), ``space``, ``measure``, ``holdout``, ``folds``, ``halving``,
        ``min_epochs`` and ``seed``. ``space`` has settings with lists of values or ranges, such as ``{"train.lr": {"log": [0.001, 0.1]},
        "train.momentum": {"uniform": [0, 0.9]}, "train.epochs": {"int": [50, 200]}}``. Default: that of the spec.
    seed : int, optional
        ``train.seed``. The same seed gives the same bits on the same machine.
    callbacks : iterable of callable
        Called after each epoch with its metrics. An exception stops the training and is raised.
    progress : bool
        Show a progress bar, if tqdm is installed.
    resume : bool
        Continue the run in ``output`` that Ctrl-C or a failure interrupted, if there is one.
    overwrite : bool
        Replace the run in ``output``.
    engine, device : str, optional
        As the options of ``miplc train``.
    threads : int, optional
        Threads of a training step. Default: all cores. The results do not depend on it.

    Warns
    -----
    FindingWarning
        For each of the findings of the run.

    Examples
    --------
    Callbacks for TensorBoard, MLflow and Weights & Biases:

    >>> writer = SummaryWriter("logs")                                         # doctest: +SKIP
    >>> def tensorboard(e): writer.add_scalar("loss", e["loss"], e["epoch"])   # doctest: +SKIP
    >>> def mlflow_metrics(e): mlflow.log_metrics({"loss": e["loss"]}, step=e["epoch"])   # doctest: +SKIP
    >>> run = wandb.init(project="bags")                                       # doctest: +SKIP
    >>> train("quickstart", callbacks=[tensorboard, mlflow_metrics, lambda e: run.log(dict(e))])   # doctest: +SKIP
    """
    chosen = dict(settings or {})
    if seed is not None:
        chosen["train.seed"] = seed
    with prepared(spec, bags, chosen) as call:
        folder = call.folder / "run" if output is None else _process.located(output, "output")
        args = [*call.args, "-o", str(folder), *search_arguments(search)]
        args += _process.options(engine=engine, device=device, threads=threads, force=overwrite)
        if resume and has_run(folder):
            args.append("--resume")
        elif resume and output is None:
            raise SpecError("resume=True needs output: the folder of the interrupted run")
        run_program(args, call, callbacks, progress)
        run = Run.read(folder, keep=output is not None)
    for text in run.findings:
        _process.warn(text, FindingWarning)
    return run


@dataclass
class Call:
    """Arguments of a command, the temporary folder with the files that they name, and words for these files."""

    args: list[str]
    folder: Path
    names: dict[str, str]


@contextmanager
def prepared(spec: Spec, bags: Bags | str | os.PathLike[str] | None, settings: Mapping[str, Any]) -> Iterator[Call]:
    """Write the bags and the spec to a temporary folder, and begin the arguments of a training."""
    with _process.temporary_folder() as folder:
        args = ["train", spec_argument(spec, folder)]
        chosen: dict[str, Any] = {}
        if isinstance(bags, Bags):
            if bags.kind == "none":
                raise DataError("the bags have no labels: give labels or candidates")
            used = bags._with_used_classes()
            for name in [name for name in bags.class_names if name not in used.class_names][:1]:
                _process.warn(f"no bag has the label {name}: the model does not predict it")
            used.write(folder / DATA_FILE)
            args += ["--data-dir", str(folder)]
            chosen["data.set"] = DATA_FILE
            if bags.kind != "candidates":
                chosen["data.labels"] = bags.kind
            if bags.groups is not None:
                chosen["data.split.group"] = bags.group_name
        elif bags is not None:
            chosen["data.set"] = str(_process.located(bags, "bags"))
        for key, value in {**chosen, **settings}.items():
            if value is not None:
                args += ["--set", _process.setting(key, value)]
        names = {_process.setting(key, value): "" for key, value in chosen.items() if key not in settings}
        names["data.split.train=1"] = ""  # of a classifier
        yield Call(args, folder, {**names, DATA_FILE: "the bags", DATA_FILE[:-4]: "the bags", "splits.csv": "splits"})


def spec_argument(spec: Spec, folder: Path, name: str = "spec.yaml") -> str:
    """Return the argument that names a spec or an experiment, which is written to a file if it has none."""
    if isinstance(spec, (str, os.PathLike)) and "\n" not in os.fspath(spec):
        return str(_process.located(spec, "the spec"))
    path = folder / name
    with _process.writing(path):
        if isinstance(spec, str):
            path.write_text(spec, "utf-8")
        elif isinstance(spec, Mapping):
            path.write_text(_process.yaml({"name": "python", **spec}, "the spec", indent=1), "utf-8")
        else:
            raise SpecError(f"the spec is of the type {type(spec).__name__}; a name, a path or a dict is needed")
    return str(path)


def has_run(folder: Path) -> bool:
    """Report whether a folder has a run, or several, to continue."""
    return any(os.path.exists(folder / name) for name in ("spec.yaml", ".miplc.runs.json", "search/plan.json"))


def run_program(args: Sequence[str], call: Call, callbacks: Iterable[Callback], progress: bool) -> dict[str, Any]:
    """Run a training and pass its epochs on."""
    called = list(callbacks)

    def epoch(metrics: Mapping[str, Any]) -> dict[str, Any]:
        for callback in called:
            callback(metrics)
        return {"loss": metrics["loss"], "test": metrics.get("test_accuracy")}

    return _process.follow(args, progress, "epoch", epoch, call.folder, call.names)
