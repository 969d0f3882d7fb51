"""VLMEvalKit's own run.py with this dataset known to it: takes the same arguments, --data is filled in."""

import json
import os
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))


def main():
    """Register the dataset, then do what VLMEvalKit does."""
    import vlmeval
    from vgbench_dataset import NAME, register

    places = [os.environ.get("VLMEVALKIT", ""), str(Path(vlmeval.__file__).resolve().parents[1])]
    script = next((path for place in places if place and (path := Path(place, "run.py")).is_file()), None)
    if script is None:
        raise SystemExit(f"found no run.py in {places}; set VLMEVALKIT to the folder of VLMEvalKit's sources")
    settings = json.loads((FOLDER / "export.json").read_text("utf-8"))["settings"]
    filled = {"--data": NAME, "--max-tokens": settings["max_tokens"], "--temperature": settings["temperature"]}
    given = sys.argv[1:]
    for name, value in filled.items():
        if "--config" not in given and name not in given:
            given += [name, str(value)]
    sys.argv = [str(script), *given]
    sys.path.insert(0, str(script.parent))
    register()
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
