"""How a worker process finds the question again: by the name of the function that makes it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stencil_dsl.testing.question import Question


@dataclass(frozen=True)
class QuestionRef:
    """A top-level function with its arguments; made by `refer`, resolved in another process.

    Closures and fixtures cannot cross a process boundary; a name and simple arguments can.
    """

    module: str
    path: str
    function: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """The same for all items of a group, stable between runs."""
        arguments = ",".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.module}.{self.function}({arguments})"

    def resolve(self) -> Question:
        """Calls the function; imports its module first where necessary."""
        return getattr(self._load(), self.function)(**dict(self.arguments))

    def _load(self) -> Any:
        if self.module in sys.modules:
            return sys.modules[self.module]
        try:
            module = importlib.import_module(self.module)
            if not self.path or _same(getattr(module, "__file__", None), self.path):
                return module
        except ImportError:
            pass
        # Not importable by name (pytest's importlib mode, a folder without __init__.py): load the file.
        spec = importlib.util.spec_from_file_location(self.module, self.path)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {self.path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[self.module] = module
        spec.loader.exec_module(module)
        return module


def refer(function: Callable[..., Question], parameters: Mapping[str, Any]) -> QuestionRef:
    """Binds function to those of the parameters that its signature names.

    Raises TypeError for functions that another process cannot find, and for missing parameters.
    """
    if "." in function.__qualname__:
        raise TypeError(f"{function.__qualname__}: a question's function must be at the top level of its module")
    arguments = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in parameters:
            arguments.append((name, parameters[name]))
        elif parameter.default is parameter.empty:
            raise TypeError(f"{function.__name__}() needs {name!r}, which is no parameter of the test")
    return QuestionRef(function.__module__, inspect.getfile(function), function.__name__, tuple(arguments))


def _same(file: str | None, path: str) -> bool:
    return file is not None and Path(file).resolve() == Path(path).resolve()
