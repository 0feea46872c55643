"""``python -m fccomodel`` is the command ``fccomodel``."""

from fccomodel.app.cli import command

if __name__ == "__main__":
    raise SystemExit(command())
