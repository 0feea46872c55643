"""The interface for Python: models, solves, sweeps, estimators of scikit-learn, and its types."""
