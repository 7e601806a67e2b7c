"""`retrace demo`: a page on this machine on which all trained models answer side by side."""

from typing import Annotated

import typer

from retrace.core.settings import read_params
from retrace.serving.demo import Demo
from retrace.serving.server import listen, serve

Port = typer.Option(min=0, max=65535, help="of 127.0.0.1; 0: any that is free")


def demo(port: Annotated[int, Port] = 8000) -> None:
    """Serve the page until Ctrl-C; nothing of it leaves this machine."""
    with listen(port) as listener:
        models = Demo(read_params())
        print(f"http://127.0.0.1:{listener.getsockname()[1]} (Ctrl-C ends it)", flush=True)
        serve(models, listener)
    print("ended")
