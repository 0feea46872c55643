"""Options: their values, and where each came from."""

from __future__ import annotations

import pytest

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError


def test_the_command_line_wins_over_the_block_over_the_configuration():
    found = options.resolve(
        {"seed": 1, "budget": None}, {"seed": 2, "budget": "5s"}, {"seed": 3, "device": "cpu"}
    )
    assert found == {
        "seed": (1, "command line"),
        "budget": ("5s", "options block"),
        "device": ("cpu", "user configuration"),
    }


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("60s", (60.0, None, None)),
        ("2m", (120.0, None, None)),
        ("1.5h", (5400.0, None, None)),
        ("250ms", (0.25, None, None)),
        ("5000it", (None, 5000, None)),
        ("1e4it", (None, 10_000, None)),
        ("1e6oracles", (None, None, 1e6)),
    ],
)
def test_budget(text, budget):
    assert options.parse_budget(text) == budget


@pytest.mark.parametrize(
    "text", ["", "60", "-3s", "0s", "0it", "1.5it", "5000 iterations", "0oracles", "nan s", "infs", "1 s 2"]
)
def test_a_bad_budget_is_refused(text):
    with pytest.raises(FccoError, match="F0808"):
        options.parse_budget(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", -1),
        ("seed", 1.5),
        ("seed", float("nan")),
        ("seed", float("inf")),
        ("seed", True),
        ("seed", "one"),
        ("seed", 2**63),
        ("device", "gpu"),
        ("device", 0),
        ("precision", "float16"),
        ("precision", 32),
        ("budget", "soon"),
        ("inner_batch", 0),
        ("stage", -4),
        ("stage", 1.5),
        ("gamma", 7),
        ("beta", 0),
        ("eta", "abc"),
        ("eta", float("nan")),
        ("rho", True),
    ],
)
def test_a_bad_value_names_its_origin(name, value):
    with pytest.raises(FccoError, match="F0808") as error:
        options.resolve({name: value}, {}, {})
    assert "(command line)" in str(error.value)


def test_a_seed_written_as_a_float_is_whole():
    assert options.resolve({}, {"seed": 3.0}, {}) == {"seed": (3, "options block")}


def test_numbers_of_algorithms():
    given = {"inner_batch": 64.0, "gamma": 1, "eta": 0, "gain": 0.0, "rho": 1e-3}
    found = {name: value for name, (value, _) in options.resolve(given, {}, {}).items()}
    assert found == given and isinstance(found["inner_batch"], int)


def test_every_option_of_a_plan_is_checked():
    from fccomodel import plan
    from fccomodel.plan.settings import SETTINGS

    checked = (options.NUMBERS.keys() | options.WORDS.keys()) - SETTINGS.keys()
    assert checked == plan.OPTIONS.keys() - {"algorithm", "step"}


@pytest.mark.parametrize(
    ("name", "value"), [("schedule", "theoretical"), ("unverified", "perhaps"), ("epsilon", 0)]
)
def test_a_word_or_number_that_no_schedule_has_is_refused(name, value):
    with pytest.raises(FccoError, match="F0808"):
        options.check_value(name, value, "command line")


def test_the_configuration_file_is_found_and_read(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert options.configuration() == {}
    file = tmp_path / "fccomodel" / "config.toml"
    file.parent.mkdir()
    file.write_text('device = "cpu"\nbudget = "10s"\n')
    assert options.configuration() == {"device": "cpu", "budget": "10s"}


@pytest.mark.parametrize(
    ("text", "said"), [("device = ", "F0807"), ("[solver]\nseed = 1\n", "holds options alone")]
)
def test_a_bad_configuration_file_is_refused(tmp_path, text, said):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(FccoError, match=said):
        options.configuration(file)


def test_a_gpu_that_is_not_there_is_refused():
    import torch

    assert options.pick_device("auto") in ("cpu", "cuda")
    with pytest.raises(FccoError, match="F0809"):
        options.pick_device(f"cuda:{torch.cuda.device_count() + 7}")
