"""Several processes over many files. Its modules load little: they are there before the rest of the program is."""
