"""What a server is given to begin with: its fleet, and the steps that an emulator takes."""
