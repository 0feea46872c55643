"""As ``sogclr.py``, with a temperature for each image: iSogCLR.

python examples/recipes/isogclr.py
"""

from __future__ import annotations

import sogclr


def main(epochs: int = 12) -> dict[str, float]:
    """Accuracy on test images with five labels for each digit, by embeddings before and after training."""
    return sogclr.main(epochs, "isogclr")


if __name__ == "__main__":
    print(main())
