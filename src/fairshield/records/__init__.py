"""Readers of records as users write them: lines, tables, dates, scores, words for yes and no.

They do not know what the records are read for.
"""

from fairshield.records.records import Columns as Columns
from fairshield.records.records import Format as Format
from fairshield.records.records import Record as Record
from fairshield.records.records import decisions_of as decisions_of
from fairshield.records.records import declared as declared
from fairshield.records.records import format_of as format_of
from fairshield.records.records import read_records as read_records
from fairshield.records.records import renamed as renamed
from fairshield.records.requests import Asked as Asked
from fairshield.records.requests import Request as Request
from fairshield.records.scores import SCORE_LEVELS as SCORE_LEVELS
from fairshield.records.scores import ScoreCost as ScoreCost
from fairshield.records.scores import ScoreRule as ScoreRule
from fairshield.records.values import NO as NO
from fairshield.records.values import YES as YES
from fairshield.records.values import Flag as Flag
from fairshield.records.values import as_cost as as_cost
from fairshield.records.values import as_flag as as_flag
from fairshield.records.values import as_number as as_number
from fairshield.records.values import as_score as as_score
from fairshield.records.values import as_threshold as as_threshold
from fairshield.records.values import read_number as read_number
