"""Ratios measured in one run, side by side with a floor; nothing here is asserted in a lane."""
