"""``python -m stencil_dsl.testing.profiled FILE``: prepares a variant and launches it once between profiler calls."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path


def main(file: str) -> None:
    """Runs the pickled `Job` of a file that `profiling.profile` wrote."""
    from stencil_dsl.testing.bench import Bench
    from stencil_dsl.testing.device import device_class
    from stencil_dsl.testing.profiling import Job
    from stencil_dsl.testing.question import Target

    job: Job = pickle.loads(Path(file).read_bytes())
    device = device_class(job.device_class)(job.device_number)  # type: ignore[call-arg]
    question = job.question.resolve()
    prepared = question.variant(job.variant).prepare(Bench(device, question, Target(job.arch, job.toolkit), {}))
    device.launch(prepared.enqueue)
    device.synchronize()
    with device.profiled():
        device.launch(prepared.enqueue)
        device.synchronize()


if __name__ == "__main__":
    main(sys.argv[1])
