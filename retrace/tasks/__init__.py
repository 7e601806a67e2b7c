"""Kinds of task: classification and question answering."""
