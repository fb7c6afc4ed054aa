"""The text of a file goes in, the settings it holds come out: JSON, TOML, or the page's link or fragment, pasted."""

import json
import re
import tomllib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pipesched.model import ScenarioError
from pipesched.scenario import SETTINGS

FRAGMENT = re.compile(r"#?[a-z_]+=[^\s]*|\w+://\S*|#?")
VIEWS = ("compare", "measured", "measured_scale")
"""What a link says of the page besides its scenario."""


def settings(content: str) -> dict[str, Any]:
    """Read settings by their names; dashes for underscores do as well.

    >>> settings('{"devices": 4, "stage_times": [1, 1.5, 1, 1]}')
    {'devices': 4, 'stage_times': [1, 1.5, 1, 1]}
    >>> settings('devices = 4  # two nodes\\nschedule = "1f1b"')
    {'devices': 4, 'schedule': '1f1b'}
    >>> settings("https://example.org/?lang=pl#devices=4&stage_times=1,1.5,1,1")
    {'devices': '4', 'stage_times': '1,1.5,1,1'}

    What ``run --format json`` prints is read too.

    Raises
    ------
    ScenarioError
        If the text is none of these (field ``scenario``), or names what is no setting.
    """
    text = content.strip().removeprefix("\ufeff")
    if FRAGMENT.fullmatch(text):
        fragment = urlsplit(text).fragment if "://" in text else text.removeprefix("#")
        known: Any = {name: value for name, value in parse_qsl(fragment) if name not in VIEWS}
    else:
        known = _parsed(text)
    if isinstance(known, dict) and isinstance(known.get("scenario"), dict):
        known = known["scenario"]
    if not isinstance(known, dict):
        raise ScenarioError("scenario", "error.scenario_file", {"reason": type(known).__name__})
    found = {name.replace("-", "_"): value for name, value in known.items()}
    for name, value in found.items():
        if name not in SETTINGS:
            raise ScenarioError(name, "error.unknown_field", {"given": name})
        if isinstance(value, dict | bool):
            raise ScenarioError("scenario", "error.scenario_file", {"reason": f"{name} = {value}"})
    return {name: value for name, value in found.items() if value is not None}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith(("{", "[")) else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError("scenario", "error.scenario_file", {"reason": str(error)}) from error
