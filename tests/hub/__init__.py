"""A hub of our own for tests: enough of the Hugging Face Hub's protocol for the real clients.

server            LocalHub, which tests use: aiohttp in a thread
routes            which function answers what, tokens and rights
repository        files, commits, branches
reading, writing  the endpoints
faults            what can go wrong on the way
content           tiny data sets and models under published names
client            runs a function of a test against a hub, in a process of its own
demo              the whole loop, step by step
loopback          a folder that keeps a process from the network
"""

from tests.hub.faults import Cut, Fault, Silence, Status, WrongBytes
from tests.hub.routes import READ_TOKEN, STRANGER_TOKEN, WRITE_TOKEN
from tests.hub.server import LocalHub

__all__ = ["READ_TOKEN", "STRANGER_TOKEN", "WRITE_TOKEN", "Cut", "Fault", "LocalHub", "Silence", "Status", "WrongBytes"]
