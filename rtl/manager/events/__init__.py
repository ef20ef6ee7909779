"""What the Manager does, one event at a time; each block owns the steps of its event.

- ``event_sequencer``: which event is next, and for which request
- ``take_request``, ``take_token``, ``take_verdict``: what comes in
- ``migrate_token``: an eager token moves to the Shared Pool
- ``send_pass``, ``send_step``: what is asked of the engines
"""
