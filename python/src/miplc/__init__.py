"""miplc for Python: multi-instance partial-label learning on bags of instances.

The program miplc trains, measures and reports; onnxruntime predicts with the models that it exports.
"""

from __future__ import annotations

from . import _process
from .bags import Bags
from .errors import DataError, FindingWarning, MiplcError, SpecError, TrainingError
from .estimators import MIPLClassifier, MIPLMultiLabelClassifier, PerInstance
from .model import Model, Prediction, load
from .searches import Fits, fit_many, search
from .studies import Report, experiment, report, specs, synth
from .training import Run, train
from .tuning import Search

__all__ = [
    "Bags",
    "DataError",
    "FindingWarning",
    "Fits",
    "MIPLClassifier",
    "MIPLMultiLabelClassifier",
    "MiplcError",
    "Model",
    "PerInstance",
    "Prediction",
    "Report",
    "Run",
    "Search",
    "SpecError",
    "TrainingError",
    "experiment",
    "fit_many",
    "load",
    "report",
    "search",
    "specs",
    "synth",
    "train",
]


def __getattr__(name: str) -> str:
    """Return ``__version__``, that of the program, which is not asked when the package is imported."""
    if name == "__version__":
        return str(_process.call("version")["miplc"])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
