"""The audit page: what was checked, what was found, and how to check it again.

:class:`Keeper` records the decisions of an audit, :func:`collect` makes a :class:`Dossier` of its
records, and :func:`render` makes a page of the dossier.  The page is one HTML file that loads
nothing, runs no script, and is the same bytes for the same log, policy and options.
"""

from fairshield.reports.dossier.content import Dossier as Dossier
from fairshield.reports.dossier.content import Keeper as Keeper
from fairshield.reports.dossier.content import Overruled as Overruled
from fairshield.reports.dossier.content import Source as Source
from fairshield.reports.dossier.content import collect as collect
from fairshield.reports.dossier.page import MARK as MARK
from fairshield.reports.dossier.page import render as render
