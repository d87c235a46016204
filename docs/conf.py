"""How the site is built: `make docs`. Every warning is an error, and no page asks for anything over a network."""

import gc
import sys
from pathlib import Path

gc.disable()  # a quarter of the time went into looking for garbage; without, a build takes 0.9 GB instead of 0.5 GB
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from vgae.version import __version__  # noqa: E402 - after the path is known

project = "vgae"
author = "The vgae authors"
copyright = author  # noqa: A001 - what Sphinx calls it
version = release = __version__

extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design", "vgae_site"]
exclude_patterns = ["_ext"]
source_suffix = {".md": "markdown"}
root_doc = "index"
language = "en"

# ------------------------------------------------------------------------------------------------------ what is checked
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!vgae\.).*")]  # types of other libraries, whose pages we do not link to
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "fieldlist"]
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False  # many sites make them by a script

# --------------------------------------------------------------------------------------------------------- how it looks
html_theme = "furo"
html_title = "vgae"
html_static_path = ["_static"]
html_css_files = ["vgae.css"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "svg"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
smartquotes = False  # it would make a dash of the two hyphens of an option
pygments_style = "friendly"
pygments_dark_style = "github-dark"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
toc_object_entries = False  # pages list their names themselves; in the navigation they would take half of the build
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
html_theme_options = {
    "light_logo": "logo.svg",
    "dark_logo": "logo-dark.svg",
    "sidebar_hide_name": True,
    "light_css_variables": {
        "color-brand-primary": "#0b6e99",
        "color-brand-content": "#0b6e99",
        "color-brand-visited": "#0b6e99",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, 'SF Mono', 'Cascadia Code', 'Liberation Mono', Menlo, monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cc6ec",
        "color-brand-content": "#6cc6ec",
        "color-brand-visited": "#6cc6ec",
    },
}
