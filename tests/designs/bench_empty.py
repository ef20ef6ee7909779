"""A bench in which no test is left."""

from tests.designs.test_echo import beats

assert beats is not None
