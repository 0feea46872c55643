"""Methods of numerical analysis that know nothing of models: numbers in, numbers out."""
