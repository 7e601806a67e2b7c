"""The official formats: running text, SST-2, SQuAD, further classification tasks; data cards."""
