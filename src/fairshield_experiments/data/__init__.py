"""Public data sets as seven environments: who is compared, and what is decided."""
