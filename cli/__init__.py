"""The command line: parse, call the analysis, render. No arithmetic here."""
