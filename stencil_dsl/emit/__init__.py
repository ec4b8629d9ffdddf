"""Level 3 to cuTile Python source."""
