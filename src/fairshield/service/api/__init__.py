"""The HTTP API: endpoints, events, metrics and the OpenAPI document."""
