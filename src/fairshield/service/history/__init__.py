"""Stored logs: streams are loaded from them, and views and audits are made of them."""
