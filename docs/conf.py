"""How the site is built: ``make docs``, offline, warnings are errors."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = str(HERE.parent / "src")
sys.path[:0] = [str(HERE / "_ext"), SOURCE]
os.environ["PYTHONPATH"] = SOURCE  # notebooks run in processes of their own


from fairshield import __version__  # noqa: E402  (found by the path above)

project = "fairshield"
author = "The fairshield contributors"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "outside",
    "docstrings",
]
exclude_patterns = ["_ext"]

# Pages: links like page.md#heading work here and on a code host.
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False
myst_heading_anchors = 4

# Notebooks are committed without outputs and run, top to bottom, when the site is built.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 120
nb_merge_streams = True

# Docstrings.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_use_type_comments = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_google_docstring = False
napoleon_use_param = False  # types are in the signature
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # several names may share a line

# Every name of fairshield that is mentioned must be documented.  Names of other projects cannot be
# looked up without a network, and words in the types of numpydoc sections are not names.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!fairshield).*"),
    # In types and bases of what is documented; nobody is meant to make one.
    (r"py:.*", r"fairshield\.client\.((calls|exchange)\b.*|\w+\.T)"),
    (r"py:.*", r"fairshield\.(base\.(counts\.N|groups\.Coded)|inputs\.model\.InputTable)"),
    (r"py:.*", r"fairshield\.policy\.(rows|layout|long|support|decisions\.Stretch)\b.*"),
    (
        r"py:.*",
        r"fairshield\.periodic\.(state\.(Mended|History)|policy\.WindowPolicy|conditions)\b.*",
    ),
    (r"py:.*", r"fairshield\.spec\.(differences\.DifferenceOfRates|bounds\.\w+|rules\.Rule)"),
    (r"py:.*", r"fairshield\.(records\.lines\.Trace|runtime\.window_rule\.Noun)"),
    (r"py:.*", r"fairshield\.adapters\.frames\.shielding\.Frame"),
    (r"py:.*", r"fairshield\.wire\.messages\.MOST_IN_BATCH"),
]

# The looks: nothing is fetched from anywhere.
html_theme = "furo"
html_title = f"fairshield {release}"
html_favicon = "../src/fairshield/service/dashboard/static/shield.svg"
html_logo = html_favicon
html_static_path = ["_static"]
html_css_files = ["fairshield.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
templates_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
