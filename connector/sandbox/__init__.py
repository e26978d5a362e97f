"""The API's twin over HTTP, from the declarations, with a store that persists.

It is the demo, the tests' network and, without its HTTP skin, the world of the simulator. The
room imports the declarations and the errors and nothing else of the connector, since a mistake
shared with the client would cancel out. What it does where the API is silent is in
docs/SANDBOX.md.
"""
