"""The playground: what its page is told, and whom its server answers."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fccomodel.app.playground import answers, running, server
from fccomodel.core.diagnostics import FccoError

MODEL = "var x in box(-3, 3); minimize risk: exp(x) + square(x); subject to cap: square(x) <= 2;"
SIMPLE = "var x; minimize risk: square(x - 1);"


@pytest.fixture(scope="module")
def playground() -> Iterator[server.Playground]:
    """A server on a free port."""
    with server.Playground(port=0) as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def asked(
    playground: server.Playground,
    path: str,
    given: Any = None,
    *,
    method: str = "POST",
    headers: Mapping[str, str | None] | None = None,
) -> tuple[int, str]:
    """The status and the body of an answer; a header that is None is left out."""
    connection = http.client.HTTPConnection(server.HOST, playground.server_port, timeout=20)
    usual = {"Origin": playground.origins[0], "X-Token": playground.token, **(headers or {})}
    body = given if isinstance(given, str) else json.dumps(given or {})
    sent = {name: value for name, value in usual.items() if value is not None}
    connection.request(method, path, body if method == "POST" else None, sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    connection.close()
    return answer.status, text


def told(playground: server.Playground, path: str, given: Any = None) -> Any:
    """The answer as Python has it."""
    status, text = asked(playground, path, given)
    assert status == 200, text
    return json.loads(text)


# -------------------------------------------------------------------------------------------- whom
def test_only_who_has_the_token_gets_the_page(playground: server.Playground) -> None:
    whole = asked(playground, f"/?token={playground.token}", method="GET")
    assert whole[0] == 200 and f'const TOKEN = "{playground.token}"' in whole[1]
    for path in ("/", "/?token=wrong", "/?token=%C3%A9"):
        status, text = asked(playground, path, method="GET")
        assert status == 200 and 'const TOKEN = ""' in text and playground.token not in text
    assert asked(playground, "/etc/passwd", method="GET")[0] == 404
    assert playground.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"X-Token": "wrong"},
        {"X-Token": None},
    ],
)
def test_requests_of_others_are_refused(
    playground: server.Playground, headers: dict[str, str | None]
) -> None:
    status, text = asked(playground, "/api/check", {"text": MODEL}, headers=headers)
    assert status == 403 and playground.token not in text
    if "Host" in headers:
        assert asked(playground, f"/?token={playground.token}", method="GET", headers=headers)[0] == 403


def test_requests_that_are_none(playground: server.Playground) -> None:
    assert asked(playground, "/api/nothing")[0] == 404
    for body in ("", "[1]", "no json", '{"text": 1}', "[" * 5000):
        assert asked(playground, "/api/check", body)[0] == 400, body[:20]
    for number in ("NaN", "-Infinity"):
        assert asked(playground, "/api/solve", f'{{"seconds": {number}}}')[0] == 400
    assert asked(playground, "HTTP://[", method="GET")[0] == 400
    assert asked(playground, "/api/check", " " * (server.LARGEST_REQUEST + 1))[0] == 400


# -------------------------------------------------------------------------------------------- what
def test_errors_have_their_places(playground: server.Playground) -> None:
    text = "var x;\nminimize squar(x);"
    (finding,) = told(playground, "/api/check", {"text": text})
    assert finding["code"] == "F0206" and finding["line"] == 2
    assert text[finding["start"] : finding["end"]] == "squar" and "square" in finding["fix"]
    assert told(playground, "/api/check", {"text": MODEL}) == []


def test_no_file_is_read(playground: server.Playground, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.fcco").write_text("var secret;", encoding="utf-8")
    text = 'include "other.fcco"; minimize square(secret);'
    (finding,) = told(playground, "/api/check", {"text": text})
    assert finding["code"] == "F0213" and "is not read here" in finding["message"]
    assert "is not read here" in told(playground, "/api/explain", {"text": text})["error"]
    with pytest.raises(FccoError, match="is not read here"):
        running.bound(text, "")
    with pytest.raises(FccoError, match="no example"):
        running.bound(MODEL, "../../etc/passwd")
    assert list(tmp_path.iterdir()) == [tmp_path / "other.fcco"]


def test_a_model_is_explained(playground: server.Playground) -> None:
    found = told(playground, "/api/explain", {"text": MODEL})
    risk, cap = found["parts"]
    assert risk["name"] == "minimize risk" and cap["name"] == "cap"
    assert risk["tree"]["curvature"] == "convex" and risk["tree"]["smooth"]
    inner = {part["text"]: part for part in risk["tree"]["children"]}
    assert inner["exp(x)"]["monotone"] == {"x": "increasing"} and inner["exp(x)"]["rule"]
    assert found["chosen"]["name"] in {one["name"] for one in found["algorithms"]}
    assert any("needs" in one["says"] for one in found["algorithms"] if not one["covers"])
    assert (
        "global minimum" in found["verdict"]
        and "F0206" in told(playground, "/api/explain", {"text": "var x; minimize squar(x);"})["error"]
    )


def test_trees_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(answers, "LARGEST_TREE", 9)
    terms = " + ".join(f"square(x - {k})" for k in range(9))
    (part,) = answers.explained(f"var x; minimize {terms};")["parts"]

    def count(tree: dict[str, Any]) -> int:
        return 1 + sum(map(count, tree["children"]))

    assert count(part["tree"]) == 9


def test_examples_are_models(playground: server.Playground) -> None:
    examples = told(playground, "/api/examples")
    assert {"portfolio", "neyman-pearson"} <= {one["name"] for one in examples}
    assert all("minimize" in one["text"] or "maximize" in one["text"] for one in examples)


@pytest.mark.slow
def test_a_solve_by_the_page(playground: server.Playground) -> None:
    """In a process of its own, whose folder is removed; another solve ends the first."""
    folders = set(Path(running.tempfile.gettempdir()).glob("fccomodel-playground-*"))
    told(playground, "/api/solve", {"text": SIMPLE, "example": "", "seconds": 0.3})
    first = playground.job
    told(playground, "/api/solve", {"text": SIMPLE, "example": "", "seconds": 0.3})
    assert first is not None and first.wait(20) and "ended" in first.since(0)[-1]["error"]
    found: dict[str, Any] = {"running": True}
    end = time.monotonic() + 60
    while found["running"] and time.monotonic() < end:
        time.sleep(0.05)
        found = told(playground, "/api/progress", {"since": 0})
    answer = found["lines"][-1]["answer"]
    assert answer["status"] == "solved" and "minimize risk" in answer["report"]
    assert set(Path(running.tempfile.gettempdir()).glob("fccomodel-playground-*")) <= folders
