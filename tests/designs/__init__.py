"""Small units and benches, good and deliberately bad, that the test library itself is tested with."""
