"""``shield_frame`` decides a table of requests and adds the decisions as columns.

Frames are those of pandas, polars, Arrow and whatever else narwhals can read.  A
:class:`~fairshield.Run` decides the rows, and a frame of the same kind is returned.  Needs the
extra ``frames``.
"""

from fairshield.base.extras import check_installed

check_installed("reading frames", "narwhals", extra="frames")

from fairshield.adapters.frames.auditing import audit_frame as audit_frame
from fairshield.adapters.frames.shielding import shield_batches as shield_batches
from fairshield.adapters.frames.shielding import shield_frame as shield_frame
