"""Processes of the program miplc: their events are passed on, and their failures become exceptions."""

from __future__ import annotations

import functools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from . import _program, _words
from .errors import DataError, MiplcError, SpecError, TrainingError

_INVALID = 2  # exit code of a wrong command line or spec
_GRACE = 60.0  # seconds that the program has after SIGINT to write its checkpoints


def call(
    *args: str,
    events: Callable[[Mapping[str, Any]], None] | None = None,
    hide: Path | None = None,
    names: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Run a command of the program and return its JSON object. args are its arguments without ``--json``.

    events is called with each event of the option ``--events``. If it raises an exception, the program is
    interrupted, as by Ctrl-C. Messages leave out the temporary folder hide, and have the words of names for files and
    settings that the package wrote, "" to leave them out.
    """
    command = [_argument(arg) for arg in (_program.path(), *args, "--json", *["--events"] * (events is not None))]
    # In its own session, so that Ctrl-C in a terminal reaches the program only through _stop.
    own: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **own
        )
    except OSError as err:
        raise TrainingError(f"the program {_program.path()} cannot be started: {err.strerror}") from err
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    said: list[str] = []
    with process, ThreadPoolExecutor() as readers:
        try:
            assert process.stdout is not None and process.stderr is not None
            output = readers.submit(process.stdout.read)
            readers.submit(_read_lines, process.stderr, lines)
            for line in _lines(lines):
                if events is not None and line.startswith(b"{"):
                    events(json.loads(line))
                else:
                    said.append(line.decode(errors="replace"))
            code = process.wait()
        except BaseException:
            _stop(process)
            raise
    return _result(output.result(), "".join(said), code, hide, names)


def follow(
    args: Sequence[str],
    progress: bool,
    unit: str,
    step: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    folder: Path,
    names: Mapping[str, str],
) -> dict[str, Any]:
    """Run a command, with a progress bar if tqdm is installed, and issue its warnings as Python warnings.

    step is called with the event of each unit, an epoch or a cell, and returns the values that the bar shows.
    """
    bar: Any = None

    def event(line: Mapping[str, Any]) -> None:
        nonlocal bar
        if "begin" in line and progress:
            with suppress(ImportError):
                from tqdm.auto import tqdm

                bar = tqdm(total=line["begin"][f"{unit}s"], initial=line["begin"]["done"], unit=unit)
        elif unit in line:
            values = step(line[unit])
            if bar is not None:
                bar.set_postfix({name: v for name, v in values.items() if v is not None}, refresh=False)
                bar.update()
        elif "warning" in line:
            warn(_words.in_python(line["warning"], folder, names))

    try:
        return call(*args, events=event, hide=folder, names=names)
    finally:
        if bar is not None:
            bar.close()


def _argument(text: str) -> str | bytes:
    """Return an argument of a command in UTF-8, which the program reads, also if the locale has another encoding."""
    if "\0" in text:
        raise SpecError(f"{text!r} contains the character NUL, which no path and no setting has")
    return text if sys.platform == "win32" else text.encode("utf-8", "surrogateescape")


def _read_lines(stream: IO[bytes], to: queue.SimpleQueue[bytes | None]) -> None:
    for line in stream:
        to.put(line)
    to.put(None)


def _lines(source: queue.SimpleQueue[bytes | None]) -> Iterator[bytes]:
    """Yield lines until the end. A signal handler of Python runs after at most 0.2 s."""
    while True:
        try:
            line = source.get(timeout=0.2)
        except queue.Empty:
            continue
        if line is None:
            return
        yield line


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the program and wait until it has written its checkpoints."""
    try:
        if sys.platform == "win32":
            process.send_signal(signal.CTRL_BREAK_EVENT)
        else:
            process.send_signal(signal.SIGINT)
        process.wait(_GRACE)
    except BaseException:  # a second Ctrl-C, or no end
        process.kill()
        process.wait()


def _result(output: bytes, said: str, code: int, hide: Path | None, names: Mapping[str, str]) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads(output)
    except ValueError:
        result = {}
    if result and (code == 0 or result.get("runs")):  # of several runs, some failed
        return result
    problems = [_words.problem_in_python(problem, hide, names) for problem in result.get("errors") or []]
    if not problems:
        text = said.strip() or f"the program miplc ended with exit code {code} and no message"
        problems = [{"text": text}]
    if result.get("more_errors"):
        problems.append({"text": f"and {result['more_errors']} more errors"})
    kind: type[MiplcError] = TrainingError
    if code == _INVALID:
        kind = SpecError
    elif result.get("wrong") == "data":
        kind = DataError
    raise kind(problems)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder that is removed at the end, also after an error.

    A later process removes the folder of one that was killed, whose lock the system has released.
    """
    parent = tempfile.gettempdir()
    folder = lock = None
    try:
        with writing(parent):
            _remove_forgotten(parent)
            folder = Path(tempfile.mkdtemp(prefix="miplc-new-"))
            lock = (folder / "lock").open("wb")
            if sys.platform != "win32":  # the name shows that the folder is locked
                _lock(lock)
                folder = folder.rename(folder.with_name(folder.name.replace("new", "python")))
        yield folder
    finally:
        if lock is not None:
            lock.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _remove_forgotten(parent: str) -> None:
    """Remove the temporary folders of processes that were killed, once in this process."""
    for lock in Path(parent).glob("miplc-new-*/lock" if sys.platform == "win32" else "miplc-python-*/lock"):
        with suppress(OSError):  # its process runs
            if sys.platform == "win32":
                lock.unlink()
            else:
                with lock.open("r+b") as file:  # an error if another user owns it
                    _lock(file)
            shutil.rmtree(lock.parent, ignore_errors=True)


def _lock(file: IO[bytes]) -> None:
    """Lock a file while it is open, or raise an OSError if another process has locked it."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of writing a file, such as a full disk, into a TrainingError with its path."""
    try:
        yield
    except (OSError, UnicodeError) as err:
        text = f"the file cannot be written: {getattr(err, 'strerror', None) or err}"
        raise TrainingError(text, file=os.fspath(path)) from err


def located(path: Any, what: str = "the path", error: type[MiplcError] = SpecError) -> Path:
    """Return a path of the user with the home folder in place of ``~``. what names it in messages."""
    try:
        text = os.fsdecode(path)
        if "\0" in text:
            raise error(f"{what} {text!r} contains the character NUL")
        found = Path(text).expanduser()
    except TypeError:
        raise error(f"{what} is of the type {type(path).__name__}; a text or a Path is needed") from None
    except RuntimeError as err:  # ~ of an unknown user
        raise error(f"{what} {text}: {err}") from None
    return found.absolute() if text.startswith("-") else found  # the program shall not read an option


def setting(key: str, value: Any) -> str:
    """Return a setting in the form of the option ``--set``. A text stays this text, whatever it contains."""
    return f"{key}={yaml(value, f'the setting {key}')}"


_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def yaml(value: Any, what: str, indent: int | None = None) -> str:
    """Return a value as JSON, which is YAML. what names it in messages."""

    def plain(part: Any) -> Any:
        if hasattr(part, "tolist"):  # of numpy
            return part.tolist()
        text = f"{what} has a value of the type {type(part).__name__}"
        raise SpecError(text, "write a number, a text, a list or a dict")

    # YAML has no pairs of surrogates, and reads some characters as the end of a line.
    text = json.dumps(value, default=plain, ensure_ascii=False, indent=indent)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def options(**values: Any) -> Sequence[str]:
    """Return options of a command: ``min_size=3`` as ``--min-size=3``, without those that are None."""
    args: list[str] = []
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, os.PathLike) or isinstance(value, str) and value.startswith("~"):
            value = located(value, name)
        if value is True:
            args.append(flag)
        elif isinstance(value, (list, tuple)) and name == "add":  # files
            args += [f"{flag}={located(one, name)}" for one in value]
        elif isinstance(value, (list, tuple)):
            quoted = [f'"{one.replace(chr(34), chr(34) * 2)}"' if isinstance(one, str) else str(one) for one in value]
            args.append(f"{flag}={','.join(quoted)}")  # a row of CSV
        elif value is not None and value is not False:
            args.append(f"{flag}={value}")
    return args


def warn(text: str, category: type[UserWarning] = UserWarning) -> None:
    """Issue a warning at the first line outside of this package."""
    level, frame, own = 2, sys._getframe(1), (__package__, "contextlib")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
