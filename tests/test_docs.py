"""Every code block of the documentation runs and prints what the page says."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from docs_examples import PAGES, ROOT, TOOLKIT, blocks, environment, has_toolkit, run_page

from stencil_dsl import Schedule
from stencil_dsl.testing import options


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_examples(page: Path, kernel_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(kernel_cache))
    examples = run_page(page, page.read_text(), has_toolkit(), environment(kernel_cache))
    wrong = [
        f"{page.name}:{e.line}: {e.source.strip()}\nexpected:\n{e.want}\ngot:\n{e.got}" for e in examples if not e.ok
    ]
    assert not wrong, "\n\n".join(wrong) + "\n\n`make docs-update` writes what the examples print into the pages"


def test_pages_have_examples() -> None:
    """A fence that the reader of blocks does not recognise would go untested."""
    for page in PAGES:
        text = page.read_text()
        fences = [f for f in re.findall(r"^```(\S*)$", text, re.MULTILINE) if f and not f.startswith("{")]
        assert fences == [b.language for b in blocks(text)], page.name
    assert any(b.needs_toolkit for page in PAGES for b in blocks(page.read_text())), TOOLKIT


def test_tables_are_complete() -> None:
    """The pages list every field of a schedule and every option of the harness."""
    schedules = (ROOT / "docs/schedules.md").read_text()
    for field in dataclasses.fields(Schedule):
        assert f"\n| `{field.name}` |" in schedules, field.name
    harness = (ROOT / "docs/harness.md").read_text()
    group = Mock()
    options.add(Mock(getgroup=lambda *_: group))
    names = [call.args[0] for call in group.addoption.call_args_list]
    assert "--gpu" in names
    for name in names:
        assert re.search(rf"^\| `{name}[` ]", harness, re.MULTILINE), name


def test_a_wrong_page_is_noticed(kernel_cache: Path) -> None:
    text = (
        "```pycon\n>>> 1 + 1\n3\n>>> [1]\n[...]\n```\n\n```python\nprint(1)\n```\n\n"
        "```console\n$ python -c 'print(2)'\n2\n$ make no-such-target\nanything\n```\n"
    )
    examples = run_page(Path("page.md"), text, False, environment(kernel_cache))
    assert [e.ok for e in examples] == [False, True, False, True, False]
    assert [e.line for e in examples] == [2, 4, 9, 13, 15]
    with pytest.raises(ValueError, match="page.md:2: a block of bash cannot be run"):
        run_page(Path("page.md"), "```bash\nls\n```\n", False, {})
