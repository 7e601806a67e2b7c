"""Trained models that are loaded once and asked many times: on the command line and on a page."""
