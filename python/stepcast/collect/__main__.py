"""`python -m stepcast.collect`, and `stepcast collect`."""

import sys


def main(arguments=None):
    try:
        import torch  # noqa: F401
    except ImportError as problem:
        print(
            f"stepcast: error: collect: it measures with PyTorch, which {sys.executable} cannot import ({problem}): "
            "pip install torch, or run this with another python3",
            file=sys.stderr,
        )
        return 2
    from stepcast.collect.cli import main as collect

    return collect(arguments)


if __name__ == "__main__":
    sys.exit(main())
