"""Storage: ``ram`` with one write and one read port, and ``fifo``."""
