"""The notebooks of examples/ run from their first cell to the last, and every last expression shows itself, with pictures."""

import ast
import json

import pytest

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebook(path, monkeypatch, capsys):
    monkeypatch.chdir(path.parent)  # as Jupyter does
    names = {"__name__": "__main__"}
    pictures = 0
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), filename=f"{path.name}:{cell['id']}")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}:{cell['id']}", "exec"), names)
        if last is None:
            continue
        shown = eval(compile(ast.Expression(last.value), f"{path.name}:{cell['id']}", "eval"), names)
        if shown is not None:
            html = shown._repr_html_()
            assert "<table" in html and repr(shown)
            pictures += html.count("<svg")
    assert pictures
    assert capsys.readouterr().out
