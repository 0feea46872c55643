"""The values that the papers' experiments chose hyper-parameters from: what ``compare --tune`` searches."""

#: sox-2022, section 4: SOX and the methods beside it; momentum weights as in alexr-2025, section 5.1
SOX = {"eta": (1e-4, 1e-3, 1e-2, 1e-1), "gamma": (0.1, 0.5, 0.9)}
BSGD = {"eta": SOX["eta"]}

#: alexr-2025, section 5.1: 2, 5, 10 times 10^-3, 10^-2, 10^-1 for every method's step
SGD = {"eta": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)}
MSVR = {**SGD, "gamma": SOX["gamma"]}
#: the dual step 1 / tau, too, in units of the arguments' size; theta = 0 is SOX without momentum
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
#: its appendix F.2; there lam is 2e-2, 2e-3, 2e-4, here it follows the arguments
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

#: hscg-2020, appendix D: all methods on vectors, those of ascvrg-2021 (which tells no values) among them
VECTOR = {"eta": (1.0, 0.5, 0.1, 0.05, 0.01, 0.001, 0.0001)}
HSCG = {**VECTOR, "theta": (0.1, 0.5, 1.0)}
