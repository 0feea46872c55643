"""An interior-point method for programs with few variables and many rows.

``arrow`` has the program, ``barrier`` the method.
"""
