"""Import the store on PostgreSQL."""

import sys

import asyncpg

import fairshield.service.server.server
import fairshield.service.store.postgres  # noqa: F401

sys.stdout.write(f"asyncpg {asyncpg.__version__}")
