"""The language of the HTTP API: its messages, and its problems by name.

Client and service import it.  It knows neither of them, and no stream.
"""
