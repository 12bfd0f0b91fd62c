"""Reports for people: the audit page (dossier) and pictures (plots)."""
