"""The list of all concepts: an addition shows in review."""

from support.places import GOLDEN

from fccomodel.app import registry

EXPECTED = GOLDEN / "registry.txt"


def test_the_list(update_golden):
    found = registry.dump()
    if update_golden:
        EXPECTED.write_text(found)
    assert found == EXPECTED.read_text()


def test_every_concept_says_what_it_is():
    for package in registry.PACKAGES:
        for name, meaning in registry.concepts(package).items():
            assert meaning, f"{package}: {name} has no meaning"
