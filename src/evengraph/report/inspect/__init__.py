"""The page of an inspection."""
