"""Says how long a job shall wait for late events: what each watermark delay loses, and which promise holds."""
