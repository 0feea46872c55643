"""Numbers of the analysis that only the bound data give: least values, signs, sampled constants."""
