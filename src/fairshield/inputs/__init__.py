r"""What we expect to see: a distribution over (group, proposal, cost[, outcome]).

The input model is the paper's :math:`\theta`.  It weighs costs and nothing else: if it is wrong
the shield costs more than it had to, and is as fair as before, because the guarantee is made for
every group, proposal and outcome, also those of probability zero.

Costs come in *levels*, each with a representative cost and an upper edge.  A request whose cost
lies between two levels is treated as the next level whose edge is not below it; a cost above the
last edge is overruled only if fairness forces it.
"""

from fairshield.inputs.model import InputModel as InputModel
from fairshield.inputs.model import InputTable as InputTable
from fairshield.inputs.schedule import Inputs as Inputs
from fairshield.inputs.schedule import InputSchedule as InputSchedule
from fairshield.inputs.schedule import inputs_from_dict as inputs_from_dict
