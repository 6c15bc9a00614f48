"""A corpus with planted truth: session logs written as the harness writes them, with every answer known."""

from analysis.synth.corpus import TRUTH_NAME, write_corpus
from analysis.synth.errors import InvalidSizeError, OutputNotEmptyError, SynthError, UnknownRecipeError
from analysis.synth.log import VERSIONS
from analysis.synth.recipes import RECIPES, Recipe
from analysis.synth.truth import SETTINGS, NamedSetting, Observed, PlantedEvent, SessionTruth, Truth

__all__ = [
    "RECIPES",
    "SETTINGS",
    "TRUTH_NAME",
    "VERSIONS",
    "InvalidSizeError",
    "NamedSetting",
    "Observed",
    "OutputNotEmptyError",
    "PlantedEvent",
    "Recipe",
    "SessionTruth",
    "SynthError",
    "Truth",
    "UnknownRecipeError",
    "write_corpus",
]
