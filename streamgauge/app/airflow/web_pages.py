"""The pages as a part of Airflow's web server: whoever is logged in and may read DAGs may see them."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from streamgauge.app.airflow import home, page_server


def app(prefix: str) -> FastAPI:
    """Makes the application that Airflow mounts below the prefix."""
    pages = page_server.app(home.artifacts(), [_may_see])
    pages.add_exception_handler(401, lambda request, problem: _log_in(prefix, request, problem))
    return pages


def _may_see(user: Annotated[BaseUser, Depends(get_user)]) -> None:
    if not get_auth_manager().is_authorized_dag(method="GET", user=user):
        raise HTTPException(403, "you may not read DAGs, hence not their results; ask an administrator for the role")


def _log_in(prefix: str, request: Request, problem: Exception) -> Response:
    """Sends a person to the login page, which leads back; a program gets the refusal."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"detail": getattr(problem, "detail", "not logged in")}, 401)
    wanted = f"{prefix}{request.url.path.removeprefix(prefix)}"
    return RedirectResponse(f"/api/v2/auth/login?{urlencode({'next': wanted})}")
