"""The mathematics that is known, one file per concept: atoms, sets, regularisers, proximal maps."""
