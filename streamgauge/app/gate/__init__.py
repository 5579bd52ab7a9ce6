"""A verdict on a commit before it is merged: both versions are built, measured in turns and compared."""
