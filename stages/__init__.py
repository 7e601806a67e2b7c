"""The scripts of the pipeline, one for each stage. Importing any of them prepares the process."""

from retrace.core.process import prepare

prepare()
