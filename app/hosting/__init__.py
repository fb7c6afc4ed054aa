"""What a site owner runs: a checkout and a pinned runtime go in, a static folder or a local server comes out.

Nothing here enters the browser, and nothing here needs more than the standard library and pip.
"""
