"""Facts that hardware, models, packers and documentation share: each code and each name is written once, here."""
