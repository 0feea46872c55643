"""Models to begin with: each is copied with all that it needs, and solved."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel.app.cli import main
from fccomodel.app.generated import templates


@pytest.mark.parametrize("name", templates.TEMPLATES)
def test_each_is_solved_where_it_is_written(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", name.replace("_", "-"), "mine"]) == 0
    assert "fccomodel solve mine" in capsys.readouterr().out
    readme = (tmp_path / "mine" / "README.md").read_text()
    assert readme.startswith(f"# {name}\n") and f"{name}.toml" in readme and "#" not in readme[2:]
    result = (
        fccomodel.compile(f"mine/{name}.fcco")
        .bind(spec=f"mine/{name}.toml")
        .solve(budget="100it", polish=False)
    )
    assert np.isfinite(result.objective) and result.report.verdict


def test_the_list(capsys):
    assert main(["new"]) == 0
    text = capsys.readouterr().out
    assert (
        len(text.splitlines()) >= 10 and "neyman-pearson" in text and max(map(len, text.splitlines())) <= 80
    )


def test_nothing_is_written_over(tmp_path, capsys):
    (tmp_path / "README.md").write_text("mine")
    assert main(["new", "cox", str(tmp_path)]) == 2
    assert "README.md is there already" in capsys.readouterr().err and not (tmp_path / "cox.fcco").exists()


def test_an_unknown_one(capsys):
    assert main(["new", "coxx"]) == 2
    assert "Did you mean `cox`?" in capsys.readouterr().err
