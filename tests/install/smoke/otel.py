"""Make and export spans."""

import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider

import fairshield  # noqa: F401

TracerProvider().shutdown()
OTLPSpanExporter().shutdown()
sys.stdout.write("an exporter of spans")
