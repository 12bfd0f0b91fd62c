"""The runs behind the published figures, emulated: where they departed from the paper's text.

Each departure is a switch of its own (:mod:`.departures`); without any, decisions are those of the
library, which follows the text.
"""
