"""The store on PostgreSQL can be opened, if there were a server."""

import sys

import asyncpg

import fairshield.service.server
import fairshield.service.store.postgres  # noqa: F401

sys.stdout.write(f"asyncpg {asyncpg.__version__}")
