"""`python -m analysis.tables`: print the documentation of the tables."""

from __future__ import annotations

import sys

from analysis.tables.schemas import tables_document

sys.stdout.write(tables_document())
