"""Steps from each schema of the index to the next; never edited once released."""
