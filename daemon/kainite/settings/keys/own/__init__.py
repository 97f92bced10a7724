"""Kainite's own keys, one module for each part of Kainite; own_keys joins them."""
