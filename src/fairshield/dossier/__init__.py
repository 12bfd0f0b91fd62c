"""One page that an auditor can file: what was checked, what was found, and how to check it again.

:class:`Keeper` listens to an audit, :func:`collect` makes a :class:`Dossier` of what it heard,
:func:`render` a page of that: one HTML file that fetches nothing, runs nothing, and is the same
bytes for the same log, policy and options.
"""

from fairshield.dossier.content import Dossier as Dossier
from fairshield.dossier.content import Keeper as Keeper
from fairshield.dossier.content import Overruled as Overruled
from fairshield.dossier.content import Source as Source
from fairshield.dossier.content import collect as collect
from fairshield.dossier.page import MARK as MARK
from fairshield.dossier.page import render as render
