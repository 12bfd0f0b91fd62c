"""The functions behind the commands demo, doctor and bench."""
