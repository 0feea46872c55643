"""Models of textbooks, each as its model text with data, and by hand in CVXPY."""

from books import classification, geometry, portfolios, regression, statistics, stochastic

#: By name, in the order of the files.
MODELS = {
    made.__name__: made
    for file in (portfolios, regression, classification, statistics, stochastic, geometry)
    for made in file.MODELS
}
