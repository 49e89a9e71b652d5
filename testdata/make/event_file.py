"""Writes testdata/events/gpt_init2e24/: steps of a recorded GradScaler run as a TensorBoard event file.

    python event_file.py        # with tensorboardX 2.6.5; run in testdata/
"""

import csv
import pathlib

from tensorboardX.writer import FileWriter
from tensorboardX.summary import scalar

STEPS = 300

folder = pathlib.Path("events/gpt_init2e24")
folder.mkdir(parents=True, exist_ok=True)
writer = FileWriter(str(folder))
with open("gradscaler_gpt_init2e24_interval20.csv") as table:
    for row in list(csv.DictReader(table))[:STEPS]:
        step = int(row["step"])
        for tag, column in [
            ("Train/loss-scale", "scale"),
            ("Train/found_inf", "found_inf"),
            ("Train/grad_amax", "grad_amax_fp32"),
            ("Train/loss", "loss"),
        ]:
            writer.add_summary(scalar(tag, float(row[column])), step)
writer.close()
(made,) = folder.glob("events.out.tfevents.*")
# The name and the first record hold the machine and the time.
made.rename(folder / "events.out.tfevents.0")
