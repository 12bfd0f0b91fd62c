"""The HTTP service: shields with a durable log and a dashboard.

Every answered decision is an entry of its stream's log, which is on disk before the answer is
sent.  Everything else that is known of a stream follows from replaying that log.
"""
