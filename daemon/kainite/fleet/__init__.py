"""The workers of an application: how this one behaves among them."""
