"""Public data sets as the paper's seven environments: groups and outcomes."""

from fairshield_experiments.data.environments import ENVIRONMENTS as ENVIRONMENTS
from fairshield_experiments.data.environments import describe as describe
from fairshield_experiments.data.environments import load as load
from fairshield_experiments.data.sources import FILES as FILES
from fairshield_experiments.data.sources import Address as Address
from fairshield_experiments.data.sources import RawFile as RawFile
from fairshield_experiments.data.sources import locate as locate
from fairshield_experiments.data.split import Split as Split
from fairshield_experiments.data.split import encode as encode
from fairshield_experiments.data.split import feature_names as feature_names
from fairshield_experiments.data.split import make_folds as make_folds
from fairshield_experiments.data.split import make_split as make_split
from fairshield_experiments.data.table import Dataset as Dataset
from fairshield_experiments.errors import DataError as DataError
