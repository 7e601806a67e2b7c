"""What pretraining predicts: masked tokens, next tokens, next sentences."""
