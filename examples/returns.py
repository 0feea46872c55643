"""Make data/returns.csv: daily returns in percent of eight assets, a common factor plus noise of their
own."""

from pathlib import Path

import numpy as np

DAYS, ASSETS = 1000, ("ALPHA", "BETA", "GAMMA", "DELTA", "EPSILON", "ZETA", "ETA", "THETA")


def main() -> None:
    random = np.random.default_rng(7)
    market = random.normal(0.03, 0.8, size=(DAYS, 1))
    exposure = np.linspace(0.3, 1.4, len(ASSETS))
    own = random.normal(0.0, np.linspace(0.5, 1.5, len(ASSETS)), size=(DAYS, len(ASSETS)))
    returns = 0.01 + 0.06 * exposure + market * exposure + own
    lines = [",".join(ASSETS), *(",".join(f"{value:.4f}" for value in row) for row in returns)]
    (Path(__file__).parent / "data" / "returns.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
