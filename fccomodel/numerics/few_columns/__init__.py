"""An interior-point method for programs of few variables and many rows: ``arrow`` has the program,
``barrier`` the method."""
