"""The stages that read the data sources, and the checkpoints that training starts from."""
