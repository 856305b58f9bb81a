"""Changes to a model's weights: what they are called, their arithmetic, and doing them."""

from pathlib import Path
from typing import Final

CALIBRATION_TEXT: Final = Path(__file__).with_name("calibration.txt")
"""A text for the methods that look at data; no model is judged on it."""
