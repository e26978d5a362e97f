"""Sandbox: a local server with the complete API, made from the declarations.

The demo and the tests use it over HTTP; the simulators use its store without HTTP. The package only
imports the declarations and the errors of the connector, because a mistake that client and sandbox
share would not be found. docs/SANDBOX.md describes behaviours that the API leaves open.
"""
