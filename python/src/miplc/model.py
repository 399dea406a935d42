"""Predictions of exported models in onnxruntime."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._process import located, writing
from .bags import as_bags
from .errors import DataError

_BATCH = 256  # bags of one call of models that predict several


class Prediction(NamedTuple):
    """Prediction of one bag with n instances."""

    probabilities: NDArray[np.float32]
    """Probability of each class, ``[k]``."""
    attention: NDArray[np.float32]
    """Attention score of each instance, ``[n]``."""
    class_attention: NDArray[np.float32] | None
    """Attention scores of each class, ``[k, n]``, of models that have them."""


class Model:
    """An exported model: the bytes of its ONNX file, which onnxruntime runs.

    A model can be pickled: the pickle contains the file.

    Parameters
    ----------
    source : path or bytes
        An ONNX file that miplc wrote, the folder of a run, or the bytes of a file.
    threads : int, optional
        Threads of onnxruntime for one bag. Default: one for feature vectors, all cores for images.

    Attributes
    ----------
    path : Path or None
        The file, None if there is none.
    bytes : bytes
        Its contents.
    metadata : dict
        Description of the model in the file: version, data, split, seed, parity.
    classes : list of k str
        Names of the classes.
    shape : tuple of int
        Shape of one instance, e.g. ``(d,)``.
    threshold : float or None
        If a bag has several labels: those with a larger probability are predicted.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes, *, threads: int | None = None) -> None:
        self.path: Path | None = None
        if not isinstance(source, bytes):
            self.path = located(source, "the model", DataError)
            if os.path.isdir(self.path):
                self.path = self.path / "model.onnx"
            try:
                source = self.path.read_bytes()
            except (OSError, UnicodeError) as err:
                text = f"the model cannot be read: {getattr(err, 'strerror', None) or err}"
                raise DataError(text, file=str(self.path)) from err
        self.bytes: bytes = source
        self.threads = threads
        self._start()

    def _start(self) -> None:
        """Create the session and read the metadata."""
        try:
            self._session = self._open(1 if self.threads is None else self.threads)
            stored = self._session.get_modelmeta().custom_metadata_map
            self.metadata: dict[str, Any] = {key.removeprefix("miplc."): _value(text) for key, text in stored.items()}
            self.classes: list[str] = self.metadata["classes"]
        except Exception as err:  # onnxruntime has no common class of its exceptions
            text = f"this is not a model of miplc: {str(err) or type(err).__name__}"
            raise DataError(text, file=str(self.path or "model")) from err
        self.shape: tuple[int, ...] = tuple(self.metadata["input_shape"])
        if self.threads is None and len(self.shape) > 1:
            self._session = self._open(0)
        self.threshold: float | None = self.metadata.get("threshold")
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._batch = self.metadata["contract"].startswith("batch/")

    def _open(self, threads: int) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(self.bytes, options, providers=["CPUExecutionProvider"])

    def __getstate__(self) -> dict[str, Any]:
        return {"bytes": self.bytes, "threads": self.threads, "path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.path is not None and not self.path.exists():  # unpickled on another machine
            self.path = None
        self._start()

    def __repr__(self) -> str:
        where = self.path or f"{len(self.bytes)} bytes"
        return f"<Model {where}: {list(self.shape)} to {len(self.classes)} classes>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the ONNX file, for example for a Go service, and return its path."""
        to = located(path)
        with writing(to):
            to.write_bytes(self.bytes)
        return to

    def _run(self, names: list[str], bags: Sequence[ArrayLike]) -> list[list[NDArray[np.float32]]]:
        """Return the outputs of each bag."""
        data = as_bags(bags)._in_order((self.metadata.get("columns") or {}).get("features"))
        shape = data.instances.shape[1:]
        if shape != self.shape:
            raise DataError(f"bag 1: its instances have the shape {list(shape)}, those of the model {list(self.shape)}")
        run = self._session.run
        if not self._batch:
            return [run(names, {"instances": bag}) for bag in data]
        results = []
        for first in range(0, len(data), _BATCH):
            at = data.offsets[first : first + _BATCH + 1]
            bag_of = np.repeat(np.arange(len(at) - 1), np.diff(at))
            found = run(names, {"instances": data.instances[at[0] : at[-1]], "bag_of": bag_of})
            parts = [
                np.split(values, (at - at[0])[1:-1]) if name == "attention" else values[:, None]
                for name, values in zip(names, found)
            ]
            results += [list(row) for row in zip(*parts)]
        return results

    def predict_proba(self, bags: Sequence[ArrayLike]) -> NDArray[np.float32]:
        """Return the probability of each class, ``[m, k]``, for m bags ``[n_i, d]``."""
        return np.concatenate([row[0] for row in self._run(["probabilities"], bags)])

    def attention(self, bags: Sequence[ArrayLike]) -> list[NDArray[np.float32]]:
        """Return the attention scores of the instances of each bag: m arrays ``[n_i]``."""
        return [row[0].reshape(-1) for row in self._run(["attention"], bags)]

    def predict(self, bags: Sequence[ArrayLike]) -> list[Prediction]:
        """Return all outputs for each of m bags ``[n_i, d]``."""
        names = ["probabilities", "attention"]
        names += ["class_attention"] * ("class_attention" in self._outputs)
        return [
            Prediction(row[0].reshape(-1), row[1].reshape(-1), row[2] if len(row) > 2 else None)
            for row in self._run(names, bags)
        ]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def load(path: str | os.PathLike[str]) -> Model:
    """Open the model of a run by its folder, or a model file: see :class:`Model`."""
    return Model(path)
