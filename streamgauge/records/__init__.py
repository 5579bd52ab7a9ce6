"""Records: each file that a stage writes as a frozen, versioned model. It is written and read through that alone."""
