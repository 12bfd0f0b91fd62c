"""The shield as it is deployed: an HTTP service with a durable log and a dashboard.

Every answered decision is an entry of its stream's log, on disk before it is answered; whatever
else is known of a stream is a replay of that log.
"""
