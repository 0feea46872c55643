"""A session in Python from a frame to scores of new rows, through every part of the interface, as the
documents write it."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel as fc
from fccomodel import E, cvar, log1pexp, real, sigmoid


@pytest.mark.slow
def test_a_session(capsys):
    pd, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    m = fc.Model("roc_fair", doc="AUC, with equal true positive rates along the curve")
    m.d = fc.dim()
    m.G = fc.labels()
    m.T = fc.grid(-3, 3, by=0.5)
    m.D = fc.table(x=real[m.d], y={0, 1}, g=m.G)
    m.kappa = fc.param(ge=0, default=0.01)
    m.s = fc.net(real[m.d], real)
    m.w = fc.params(m.s)
    D, G, T, s, w = m.D, m.G, m.T, m.s, m.w
    P, N = D.where(D.y == 1), D.where(D.y == 0)

    @m.define
    def score(x):
        return s(w, x)

    rate = m.let(rate=(E(sigmoid(score(z.x) - t) for z in P) for t in T))
    own = m.let(own=(E(sigmoid(score(z.x) - t) for z in P.where(D.g == k)) for k in G for t in T))
    m.maximize(auc=E(sigmoid(score(p.x) - score(n.x)) for p in P for n in N))
    m.subject_to(gap=(abs(own[k, t] - rate[t]) <= m.kappa for k in G for t in T))
    worst = cvar((E(log1pexp(-score(z.x)) for z in P.where(D.g == k)) for k in G), tail=0.3)

    print(m)
    assert "# AUC, with equal true positive rates" in capsys.readouterr().out
    assert fc.Model.parse(str(m)).hash == m.hash
    assert m.check().explain().why("gap").startswith("gap: unknown curvature")

    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    frame = pd.DataFrame(
        {"x": list(x), "y": (x[:, 0] + rng.normal(size=80) > 0).astype(int), "g": rng.choice(["a", "b"], 80)}
    )
    torch_module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ELU(), torch.nn.Linear(3, 1))
    p = m.bind(D=frame, s=torch_module)
    r = p.solve(seed=0, budget="60it", polish=False)
    assert np.ndim(r.multipliers["gap"].sel(k="a", t=0.5)) == 0
    r2 = p.with_params(kappa=0.005).solve(start=r, budget="20it", polish=False)
    assert r2.constraints.keys() == r.constraints.keys() and r2.json["binding"]["params"] == {"kappa": 0.005}
    curve = p.sweep(kappa=[0.05, 0.02], budget="20it", polish=False)
    assert curve.values("kappa") == [0.05, 0.02] and len(curve.objectives) == 2 and "kappa" in str(curve)
    del m.constraints["gap"]
    m.minimize(worst=worst)
    changed = m.bind(D=frame, s=torch_module).solve(budget="20it", polish=False)
    assert not changed.constraints and "minimize worst: cvar(tail = 0.3)[k in G]" in str(m)

    new = frame[["x"]]
    assert r.value("score", new) == pytest.approx(r.decision_function(new))
    assert set(r.predict(new)) <= {0, 1} and r.module("s")(torch.zeros(1, 2)).numel() == 1
