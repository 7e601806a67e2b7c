"""The scripts of the pipeline, one for each stage. Importing any of them prepares the process."""

from retrace.core.errors import prepare_process

prepare_process()
