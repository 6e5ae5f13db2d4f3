"""The control listener: what people and their programs steer by. It decides nothing itself."""
