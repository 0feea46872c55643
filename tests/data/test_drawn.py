"""Rows that are drawn when they are asked for: what is read, when, and that the answer is that of memory."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import fccomodel as fc
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.drawn import DrawnColumn, drawn

torch.set_num_threads(1)

MODEL = """
model ranking;
dim c; dim h; dim v;
data D : table(x: real[c, h, v], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
net s : real[c, h, v] -> real;
var w = params(s);
maximize auc: E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));
subject to flagged: E[z ~ D] sigmoid(s(w; z.x)) <= 0.3;
"""
#: options of a short solve whose steps are the only thing that moves the point
SHORT = {"budget": "20it", "polish": False, "precision": "float64", "backend": "eager", "unverified": True}


class Images(Dataset):
    """Images with a bright square where the label is 1, which counts the items that were read."""

    def __init__(self, n: int = 200, flip: bool = False):
        rng = np.random.default_rng(0)
        self.y = (rng.random(n) < 0.25).astype(int)
        self.x = rng.normal(size=(n, 1, 6, 6)).astype(np.float32)
        self.x[self.y == 1, :, 2:5, 2:5] += 0.7
        self.flip, self.read = flip, 0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, row):
        self.read += 1
        x = torch.from_numpy(self.x[row])
        if self.flip and torch.rand(()) < 0.5:
            x = x.flip(-1)
        return x, int(self.y[row])


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ELU(), torch.nn.Flatten(), torch.nn.Linear(64, 1)
    )


def bound(data, nets=None, **given):
    return fc.compile(MODEL).bind(D=data, nets=nets or {"s": net()}, **given)


def column(problem) -> DrawnColumn:
    values = problem.bound.tables["D"].columns["x"]
    assert drawn(values)
    return values


def refused(code: str, part: str, data, **given) -> None:
    with pytest.raises(FccoError) as caught:
        bound(data, **given)
    (found,) = caught.value.diagnostics
    assert found.code == code and part in str(caught.value)


@pytest.fixture(scope="module")
def in_memory():
    images = Images()
    return bound({"x": images.x, "y": images.y}).solve(**SHORT)


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_that_do_not_change_give_the_answer_of_memory(workers, in_memory):
    images = Images()
    problem = bound(images, keys={"y": images.y}, workers=workers)
    assert images.read < 150  # a few rows are read to see what they are
    answer = problem.solve(**SHORT)
    assert answer.objective == in_memory.objective
    assert all(np.array_equal(v, in_memory.variables[n]) for n, v in answer.variables.items())


@pytest.mark.slow
def test_a_small_data_set_that_does_not_change_is_read_once(in_memory):
    problem = bound(Images())
    assert not drawn(problem.bound.tables["D"].columns["x"])
    assert problem.solve(**SHORT).objective == in_memory.objective


def test_random_rows_are_drawn_anew_and_workers_draw_the_same():
    random = bound(Images(flip=True))
    assert column(random).source.random
    source = column(random)
    first, again = source.drawn(torch.arange(8), 1), source.drawn(torch.arange(8), 1)
    assert torch.equal(first, again) and not torch.equal(first, source.drawn(torch.arange(8), 2))
    assert torch.equal(source[:8].fetched(), source[:8].fetched())  # a look sees one draw of each row


@pytest.mark.slow
def test_workers_draw_the_rows_that_one_process_draws():
    alone = bound(Images(flip=True)).solve(**SHORT)
    together = bound(Images(flip=True), workers=2).solve(**SHORT)
    assert alone.objective == together.objective


def test_a_data_set_keeps_the_random_numbers_of_its_user():
    compiled, module, images = fc.compile(MODEL), net(), Images(flip=True)
    before = torch.get_rng_state()
    problem = compiled.bind(D=images, nets={"s": module})
    column(problem).drawn(torch.arange(8), 3)
    assert torch.equal(before, torch.get_rng_state())


def test_transforms_of_steps_and_of_looks():
    images = Images()
    problem = bound(
        {"x": images.x, "y": images.y},
        transform={"x": lambda x: x[..., ::-1].copy()},
        eval_transform={"D.x": lambda x: x / 2},
    )
    source = column(problem)
    rows = torch.tensor([3, 1])
    assert np.array_equal(source.drawn(rows, 0), images.x[[3, 1], ..., ::-1])
    assert np.array_equal(source[rows].fetched(), images.x[[3, 1]] / 2)


@pytest.mark.slow
def test_an_array_in_a_file_is_never_read_as_a_whole(tmp_path, in_memory):
    images = Images()
    np.save(tmp_path / "x.npy", images.x)
    problem = bound({"x": np.load(tmp_path / "x.npy", mmap_mode="r"), "y": images.y})
    assert isinstance(column(problem).source.reader.arrays["x"], np.memmap)
    answer = problem.solve(**SHORT)
    assert answer.objective == in_memory.objective
    answer.save(tmp_path / "out")  # the program reads the file too
    done = subprocess.run(
        [sys.executable, tmp_path / "out" / "solver.py"], capture_output=True, text=True, check=True
    )
    assert f"objective {answer.objective:.6g}"[:14] in done.stdout


@pytest.mark.slow
def test_a_program_without_its_rows_says_where_to_write_them(tmp_path):
    images = Images()
    bound(images, keys={"y": images.y}).solve(**SHORT).save(tmp_path / "out")
    program = tmp_path / "out" / "solver.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 1 and "write fetch_D_x in it" in done.stderr
    np.save(tmp_path / "x.npy", images.x)
    text = program.read_text()
    (refused,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Raise) and "F0539" in ast.unparse(node)]
    fetch = f"    import numpy\n    return torch.from_numpy(numpy.load({str(tmp_path / 'x.npy')!r})[numbers])"
    lines = text.splitlines()
    lines[refused.lineno - 1 : refused.end_lineno] = [fetch]
    program.write_text("\n".join(lines))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.returncode == 0 and "objective 0." in done.stdout


def test_rows_of_a_condition_are_rows_of_the_source():
    images = Images()
    problem = bound(images, keys={"y": images.y, "k": np.arange(200)}, spec={"D": {"where": "k >= 100"}})
    assert np.array_equal(column(problem)[:3].fetched(), images.x[100:103])


def test_what_cannot_be_drawn_is_refused():
    images = Images()
    refused("F0507", "loader.dataset", DataLoader(images))
    refused("F0539", "200 items, and keys has 3 rows", images, keys={"y": [0, 1, 0]})
    refused("F0539", "formulas read it", images, transform={"y": abs})
    refused("F0539", "the model has no such column", images, transform={"image": abs})
    refused("F0539", "steps see rows of shape", images, transform={"x": lambda x: x[:, :2]})
    array = {"x": images.x.reshape(200, 36), "y": images.y}
    with pytest.raises(FccoError, match="rows are drawn, so they have no mean"):
        fc.compile(MODEL.replace("real[c, h, v]", "real[c]").replace("dim h; dim v;", "")).bind(
            D=array, spec={"D": {"x": {"column": "x", "scale": "standard"}}}, workers=1, nets={"s": "mlp(4)"}
        )
    images.x[7] = np.nan
    with pytest.raises(FccoError, match="item 7 of a Images has a value that is missing"):
        bound(images, keys={"y": images.y}).solve(**SHORT)


def test_an_error_of_a_worker_is_the_error_of_the_solve():
    images = Images()
    images.x[7] = np.nan
    with pytest.raises(FccoError, match="item 7 of a Images"):
        bound(images, keys={"y": images.y}, workers=1).solve(**SHORT)


class Rows:
    """Stands in for ``datasets.Dataset``: single columns are read without the others."""

    column_names = ["image", "label"]

    def __init__(self, images: Images):
        self.images, self.decoded = images, 0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        if isinstance(index, str):
            assert index == "label", "an image was decoded for the labels"
            return list(self.images.y)
        self.decoded += 1
        return {"image": self.images.x[index], "label": int(self.images.y[index])}


Rows.__module__ = "datasets.arrow_dataset"


def test_a_dataset_of_hugging_face(in_memory):
    rows = Rows(Images())
    problem = bound(rows, spec={"D": {"x": "image", "y": "label"}}, workers=1)
    assert rows.decoded < 150 and drawn(problem.bound.tables["D"].columns["x"])
    assert problem.solve(**SHORT).objective == in_memory.objective


@pytest.fixture
def pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for k in range(6):
            pixels = rng.integers(0, 128, (8, 8, 3), dtype=np.uint8) + 100 * (label == "dog")
            image.fromarray(pixels.astype(np.uint8)).save(tmp_path / label / f"{k}.png")
    return tmp_path


FOLDER = {"D": {"x": "image", "y": {"column": "label", "map": {"cat": 0, "dog": 1}}}}


def test_a_folder_of_images(pictures):
    linear = {"s": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(1))}
    linear["s"](torch.zeros(1, 3, 8, 8))
    small = bound(str(pictures), linear, spec=FOLDER)
    table = small.bound.tables["D"]
    assert table.columns["x"].shape == (12, 3, 8, 8) and table.columns["y"].tolist() == [0] * 6 + [1] * 6
    assert 0 <= table.columns["x"].min() and 0.8 < table.columns["x"].max() <= 1.0
    asked = bound(str(pictures), linear, spec=FOLDER, workers=1)
    assert np.array_equal(column(asked)[:5].fetched(), table.columns["x"][:5])
    flat = {"x": lambda picture: np.asarray(picture.convert("L"))[None] / 255}
    small_net = {"s": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1))}
    grey = bound(str(pictures), small_net, spec=FOLDER, transform=flat, eval_transform=flat)
    assert column(grey).shape == (12, 1, 8, 8)
    (pictures / "dog" / "9.png").write_bytes(b"no picture")
    with pytest.raises(FccoError, match="9.png cannot be read as an image"):
        np.asarray(column(bound(str(pictures), linear, spec=FOLDER, workers=1)))


def test_labels_that_change_are_refused_and_vectors_that_formulas_read_are_noted():
    class Mixed(Images):
        def __getitem__(self, row):
            x, y = super().__getitem__(row)
            return x + torch.rand(()), int(torch.rand(()) < 0.5)

    refused("F0539", "changes from one reading to the next", Mixed())
    linear = (
        "dim d; data D : table(x: real[d], y: {0, 1}); var w[d]; minimize f: E[z ~ D] (dot(w, z.x) - z.y)^2;"
    )

    class Noisy(Images):
        def __getitem__(self, row):
            x, y = super().__getitem__(row)
            return x.flatten() + torch.rand(()), y

    problem = fc.compile(linear).bind(D=Noisy())
    assert any("was read once, since formulas read it too" in note for note in problem.bound.notes)


def test_a_report_says_that_rows_change():
    answer = bound(Images(flip=True)).solve(**SHORT)
    assert any("change from one reading to the next" in note for note in answer.outcome.bound.notes)
    assert any(
        line.startswith("rows: D.x is transformed at every draw")
        for line in answer.outcome.planned.plan.practice
    )
    assert "steps draw them anew" in " ".join(str(answer).split())
