"""Make the files in data/: loans, clinical trials, a shop's sales, weathers, hours of a year, spare parts.
Synthetic, from one seed each."""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "data"


def write(name: str, columns: dict[str, np.ndarray]) -> None:
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [
        ",".join(columns),
        *(",".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row) for row in rows),
    ]
    (FOLDER / f"{name}.csv").write_text("\n".join(lines) + "\n")


def loans() -> None:
    """Applicants of two groups; income is lower in one of them, repayment depends on income, debt and
    a noise."""
    random = np.random.default_rng(1)
    n = 1200
    group = random.random(n) < 0.35
    income = random.normal(3.0 - 0.6 * group, 0.8, n)
    debt, years = random.normal(1.0, 0.5, n), random.gamma(2.0, 3.0, n)
    score = 1.2 * income - 1.5 * debt + 0.1 * years - 2.4 + random.logistic(0, 0.7, n)
    repaid, names = (score > 0).astype(int), np.where(group, "B", "A")
    write("loans", {"income": income, "debt": debt, "years": years, "group": names, "repaid": repaid})


def trial() -> None:
    """Survival times of patients, some censored at the trial's end; the hazard depends on treatment,
    age and a marker."""
    random = np.random.default_rng(2)
    n = 400
    treated, age, marker = random.integers(0, 2, n), random.normal(60, 10, n), random.normal(0, 1, n)
    hazard = np.exp(-0.7 * treated + 0.04 * (age - 60) + 0.5 * marker) / 24
    time, end = random.exponential(1 / hazard), random.uniform(6, 60, n)
    months = np.minimum(time, end)
    write(
        "trial",
        {
            "months": months,
            "died": (time <= end).astype(int),
            "treated": treated,
            "age": age,
            "marker": marker,
        },
    )


def sales() -> None:
    """Daily demand for three kinds of bread: a weekday's share of a common demand, and a noise."""
    random = np.random.default_rng(3)
    common = random.lognormal(0.0, 0.25, 500)
    means = {"rye": 60, "wheat": 110, "rolls": 240}
    write("sales", {name: random.poisson(mean * common) for name, mean in means.items()})


def tasks() -> None:
    """Three tasks whose classes are split by planes at angles to each other."""
    random = np.random.default_rng(4)
    planes = {"first": [1.0, 0.5, 0.0, 0.2], "second": [0.8, -0.3, 0.6, 0.0], "new": [0.2, 1.0, 0.9, -0.4]}
    names = np.repeat(list(planes), 300)
    x = random.normal(size=(len(names), 4))
    score = np.einsum("ij,ij->i", x, np.array([planes[name] for name in names])) + random.logistic(
        0, 0.3, len(names)
    )
    write(
        "tasks", {**{f"f{k}": x[:, k] for k in range(4)}, "task": names, "label": np.where(score > 0, 1, -1)}
    )


def weather() -> None:
    """The farmer's yields, tonnes per acre, and a fifth more and less of them."""
    yields = {"wheat": 2.5, "corn": 3.0, "beets": 20.0}
    write("weather", {name: mean * np.array([0.8, 1.0, 1.2]) for name, mean in yields.items()})


def hours() -> None:
    """Hours of a year: a load with a daily and a yearly wave, wind, and what outages leave of the rest."""
    random = np.random.default_rng(5)
    hour = np.sort(random.integers(0, 8760, 600))
    load = (
        8
        + 1.5 * np.cos(2 * np.pi * hour / 8760)
        + 1.2 * np.sin(2 * np.pi * (hour % 24 - 8) / 24)
        + random.normal(0, 0.4, 600)
    )
    wind, outages = random.beta(1.2, 2.5, 600), random.binomial(20, 0.95, (2, 600)) / 20
    write("hours", {"load": load, "wind": wind, "base": outages[0], "peak": outages[1]})


def patients() -> None:
    """A randomised trial: the benefit of the treatment grows with a marker, its side effects with age."""
    random = np.random.default_rng(6)
    n = 1500
    years, pressure, marker = random.uniform(30, 85, n), random.normal(130, 15, n), random.normal(0, 1, n)
    share = np.where(marker > 0, 0.6, 0.4)
    treated = (random.random(n) < share).astype(int)
    benefit = 0.5 + treated * (0.3 + 0.4 * marker) + random.normal(0, 0.3, n)
    harm = treated * (random.random(n) < 0.02 + 0.4 * (years - 30) / 55)
    groups = np.select([years < 50, years < 70], ["under 50", "50 to 69"], "70 and more")
    odds = np.where(treated == 1, share, 1 - share)
    write(
        "patients",
        {
            "years": years,
            "pressure": pressure,
            "marker": marker,
            "age": groups,
            "treated": treated,
            "odds": odds,
            "benefit": benefit,
            "harm": harm.astype(int),
        },
    )


def parts() -> None:
    """Half a year's weekly demand for a spare part, drawn 60 times: a level that wanders, and a season."""
    random = np.random.default_rng(7)
    weeks = np.arange(26)
    level = 40 * np.exp(np.cumsum(random.normal(0, 0.05, (60, 26)), axis=1))
    demand = random.poisson(level * (1 + 0.4 * np.sin(2 * np.pi * weeks / 26)))
    write("parts", {f"week{week + 1}": demand[:, week] for week in weeks})


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    loans()
    trial()
    sales()
    tasks()
    weather()
    hours()
    patients()
    parts()
