"""Compare: up to six strategies side by side on one prompt, in lock-step."""

from ui.compare import body, meanwhile
from ui.frame import page

page("compare", body, meanwhile=meanwhile)
