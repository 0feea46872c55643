"""Grids of hyper-parameters in the papers' experiments. ``compare --tune`` searches them."""

#: sox-2022, section 4, for SOX and the methods compared with it; momentum weights as in alexr-2025, 5.1
SOX = {"eta": (1e-4, 1e-3, 1e-2, 1e-1), "gamma": (0.1, 0.5, 0.9)}
BSGD = {"eta": SOX["eta"]}

#: alexr-2025, section 5.1: steps of 2, 5, 10 times 10^-3, 10^-2, 10^-1 for every method
SGD = {"eta": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)}
MSVR = {**SGD, "gamma": SOX["gamma"]}
#: alexr-2025: the dual step 1 / tau is in units of the arguments' size; theta = 0 is SOX without momentum
#: (section 3.1)
OOA = {**SGD, "tau": (1.0, 3.0, 10.0)}
ALEXR = {**SGD, "theta": (0.0, 0.1, 1.0), "tau": (0.1, 1.0, 10.0)}

#: sonex-alexr2-2025, appendix F.1
SONEX = {
    "eta": (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3),
    "gamma": (0.1, 0.2, 0.5, 0.8),
    "gamma_prime": (0.01, 0.02, 0.05, 0.1, 0.2),
    "beta": (0.1, 0.2, 0.5, 0.8),
}
#: sonex-alexr2-2025, appendix F.2. Its grid for lam is left out, because lam follows the arguments here.
SONX = {"eta": (1e-4, 1e-3, 1e-2, 1e-1), "rho": (4.0, 6.0, 8.0, 10.0, 20.0, 40.0)}
ALEXR2 = {
    "inner_steps": (5, 10),
    "eta": (1e-3, 1e-2, 0.1, 1.0),
    "inner_eta": (1e-3, 1e-2, 0.1, 1.0),
    "nu": (0.1, 0.01),
    "rho": SONX["rho"],
}
SQUARED_HINGE_SOX = {"rho": (10.0, 40.0, 80.0, 100.0, 200.0, 400.0, 800.0, 1000.0), "eta": SONX["eta"]}
ICPPAC = {"eta": (0.1, 0.01), "tau": (1.0, 10.0, 100.0), "nu": (1e2, 1e3, 1e4)}

#: hscg-2020, appendix D, for all methods with a vector oracle
VECTOR = {"eta": (1.0, 0.5, 0.1, 0.05, 0.01, 0.001, 0.0001)}
HSCG = {**VECTOR, "theta": (0.1, 0.5, 1.0)}
