"""KCL's keys that have an effect here, one module for each part of the daemon; kcl_keys joins them."""
