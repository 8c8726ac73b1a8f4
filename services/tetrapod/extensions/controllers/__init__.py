"""The controllers of CustomResourceDefinitions: names, conditions and finalization."""
