"""What a prediction from Python costs over the same one from C++, and tables of many rows: `./dev wheel` prints it.

    python bench_predict.py [CALLS]       with the stepcast that this Python imports
"""

import statistics
import sys
import time

import stepcast
from stepcast import _stepcast

SMALL = {"model": "llama-3-8b", "platform": "dgx-h100", "gpus": 8, "tp": 2}
LARGE = {"model": "llama-3-70b", "platform": "dgx-h100", "gpus": 512, "tp": 4, "pp": 4, "gbs": 512, "seq": 8192, "mbs": 1,
         "bf16": True, "sequence_parallel": True, "use_distributed_optimizer": True}


def timed_us(call):
    begin = time.perf_counter()
    result = call()
    return 1e6 * (time.perf_counter() - begin), result


def overhead_us(keywords, rounds):
    """Of every call, up to its step time, what the session in it did not take: what Python costs. Medians. What works between
    calls (here, and on the same machine) empties the caches, and is what most of it goes to where a call is long."""
    inside, whole = [], []

    def timed(options):
        forecast, session_us = _stepcast.predict_timed(options)
        inside.append(session_us)
        return forecast

    plain, _stepcast.predict = _stepcast.predict, timed
    try:
        for _ in range(rounds + 1):
            begin = time.perf_counter()
            forecast = stepcast.predict(**keywords)
            forecast.step_time_ms
            whole.append(1e6 * (time.perf_counter() - begin))
            del forecast  # C++ programs wait for the end of an answer, too
    finally:
        _stepcast.predict = plain
    inside_us = statistics.median(inside[1:])  # the first call loads the platform
    return statistics.median(all_us - session_us for all_us, session_us in zip(whole[1:], inside[1:])), inside_us


def main(rounds):
    for name, keywords in (("8 GPUs", SMALL), ("512 GPUs, 12 keywords", LARGE)):
        more_us, inside_us = overhead_us(keywords, rounds)
        print(f"predict, {name}: {more_us:.0f} us over the {inside_us:.0f} us of C++")
    us, _ = timed_us(lambda: stepcast.predict(**SMALL).to_dict())
    print(f"predict, 8 GPUs, with the whole document as a dict: {us:.0f} us")
    rows = "\n".join(["tp,pp,step_time_ms,what,fits"] + [f"{i % 8},{i % 16},{i * 0.37},zero{i % 4},true" for i in range(100000)])
    us, table = timed_us(lambda: stepcast.Table(_stepcast.Table.from_csv(rows)))
    print(f"a table of {len(table):,} rows: {us / 1e3:.0f} ms")
    for library in ("pandas", "polars"):
        try:
            __import__(library)
        except ImportError:
            continue
        us, _ = timed_us(getattr(table, f"to_{library}"))
        print(f"  as a frame of {library}: {us / 1e3:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
