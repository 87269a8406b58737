"""The operator pages: HTML over the same functions as the routes of the API.

A page is a module: `router = page_router()`, a `Seen(scope)` dependency for the caller, `ready(request)` for the services,
`render(request, template, …)` for the answer. One path has one page: what is done on it is posted to that path, with the
name of the action in `do`; done, it answers `redirect(…)`, refused, the same page with the problem. `api/app.py` lists them.
"""
