"""Where the text of a stencil may come from, and what a Stencil object says of itself."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import linecache
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from frontend_cases import check, define, operations, read

from stencil_dsl import FrontendError, StencilError, stencil
from stencil_dsl.frontend.source_text import find_source

registry = []


def register(item):
    registry.append(item)
    return item


def swallow(fn):
    @functools.wraps(fn)
    def inner(*args):
        return fn(*args)

    return inner


def module_of(path: Path, text: str):
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_module_with_a_helper_and_comments_before(tmp_path: Path) -> None:
    module = module_of(
        tmp_path / "heat.py",
        '''\
        """Docs with a line that looks like code:
        def heat(u, i): return nothing
        """
        from stencil_dsl import stencil
        A = 0.1

        def lap(u, i):
            return u[i - 1] + u[i + 1] - 2 * u[i]

        @stencil
        def heat(u, i):
            """One step."""
            return u[i] + A * lap(u, i)
        ''',
    )
    check(module.heat)
    assert module.heat.__doc__ == "One step." and module.heat.__module__ == "heat"
    text = str(module.heat.module())
    assert '"heat.py:8:12"' in text and str(tmp_path) not in text
    assert 'at "heat.py:11:1"' in text


def test_nested_in_functions_and_classes() -> None:
    class Box:
        def make(self, weight):
            if weight:

                @stencil
                def inner(u, i):
                    return weight * u[i + 1]

                return inner

    check(Box().make(0.5))
    check(Box().make(2))


def test_decorators_above() -> None:
    @register
    @stencil
    def f(u, i):
        return u[i + 1]

    assert registry[-1] is f
    assert operations(f) == ["access u[1]", "yield"]


def test_a_decorator_below_that_returns_the_function_itself() -> None:
    @stencil
    @register
    def f(u, i):
        return u[i + 1]

    assert operations(f) == ["access u[1]", "yield"]


def test_a_wrapping_decorator_below_is_refused() -> None:
    with pytest.raises(FrontendError, match="wrapped by a decorator"):

        @stencil
        @swallow
        def f(u, i):
            return u[i + 1]


def test_a_decorator_over_several_lines() -> None:
    def options(**kwargs):
        return register

    @options(
        first=1,
        second=2,
    )
    @stencil
    def f(
        u,
        i,
    ):
        return u[
            i
            + 2
        ]  # fmt: skip

    assert operations(f) == ["access u[2]", "yield"]


def test_same_name_twice_takes_the_right_one() -> None:
    @stencil
    def f(u, i):
        return u[i + 1]

    first = f

    @stencil
    def f(u, i):
        return u[i + 2]

    assert operations(first) == ["access u[1]", "yield"]
    assert operations(f) == ["access u[2]", "yield"]


def test_notebook_cell_with_a_magic_elsewhere_in_the_text() -> None:
    cell = "<ipython-input-3-abc>"
    text = "if True:\n    @stencil\n    def f(u, i):\n        return u[i + 1] * nope\n"
    shown = text + "%timeit 1 + 1\n"
    linecache.cache[cell] = (len(shown), None, shown.splitlines(keepends=True), cell)
    with pytest.raises(FrontendError) as caught:
        exec(compile(text, cell, "exec"), {"stencil": stencil})
    assert (caught.value.line, caught.value.col) == (4, 26)
    assert caught.value.source_line == "        return u[i + 1] * nope"


def test_exec_without_registered_text_is_refused() -> None:
    namespace: dict = {}
    exec("def f(u, i): return u[i]", namespace)
    with pytest.raises(FrontendError, match="not available.*") as caught:
        stencil(namespace["f"])
    assert "linecache" in caught.value.advice


def test_doctest() -> None:
    text = """
    >>> from stencil_dsl import stencil
    >>> @stencil
    ... def f(u, i, j):
    ...     return u[i, j + 1]
    >>> f
    <stencil f(u, i, j), 2-D>
    """
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "case", None, 0))
    assert runner.summarize(verbose=False) == (0, 3)


def test_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "moved.py"
    module = module_of(path, "def f(u, i):\n    return u[i]\n")
    path.write_text("\n\n\ndef f(u, i):\n    return u[i + 1]\n")
    os.utime(path, (1, 1))
    with pytest.raises(FrontendError, match="no function 'f' at this line"):
        stencil(module.f)


@pytest.mark.parametrize("thing", [3, int, print, functools.partial(print)])
def test_only_plain_functions(thing) -> None:
    with pytest.raises(FrontendError, match="not a plain Python function"):
        stencil(thing)


def test_lambdas_and_async_functions_are_refused() -> None:
    with pytest.raises(FrontendError, match="lambda"):
        stencil(lambda u, i: u[i])
    with pytest.raises(FrontendError, match="async"):
        find_source(define("async def f(u, i): return u[i]"))


def test_values_are_taken_when_the_stencil_is_read() -> None:
    fn = define("A = 2\ndef f(u, i): return A * u[i]")
    first = stencil(fn)
    fn.__globals__["A"] = 3
    assert "constant 2.0" in operations(first)
    assert "constant 3.0" in operations(stencil(fn))


def test_modules_are_new_each_time() -> None:
    f = read("def f(u, i): return u[i] + u[i + 1]")
    first = f.module()
    first.ops.first.detach()
    assert "source.stencil" in str(f.module())


def test_a_stencil_is_not_called() -> None:
    f = read("def f(u, i): return u[i]")
    with pytest.raises(StencilError, match="cannot be called"):
        f(1, 2)


def test_reading_a_stencil_loads_no_compiler() -> None:
    code = """
        import sys, linecache
        from stencil_dsl import stencil
        text = "def f(u, i): return u[i] + 2 * u[i + 1]"
        linecache.cache["<t>"] = (len(text), None, [text], "<t>")
        names = {}
        exec(compile(text, "<t>", "exec"), names)
        stencil(names["f"])
        print(sorted({name.partition(".")[0] for name in sys.modules} & {"xdsl", "numpy", "cuda", "cupy"}))
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
