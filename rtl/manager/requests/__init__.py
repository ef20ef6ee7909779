"""What the Manager knows of its requests, and which of them is next.

- ``request_table``: numbers of each request; the row of the one at hand
- ``request_flags``: a bit a request for each of its states, and counts of them
- ``request_lister``: requests of a set, one after the other
- ``readiness``: which passes and draft steps may begin
"""
