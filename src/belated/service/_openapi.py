"""The interface as OpenAPI describes it, made from the bodies themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

import belated
from belated.service import _bodies as bodies
from belated.service._bodies import ErrorAnswer, EventAnswer

_KINDS = (
    bodies.DecideBody,
    bodies.FeedbackBody,
    bodies.ActivateBody,
    bodies.CancelBody,
    bodies.DecideAnswer,
    EventAnswer,
    bodies.DecisionAnswer,
    ErrorAnswer,
)
_REFUSALS = {
    "400": "the request is not HTTP as it should be",
    "401": "a key is needed",
    "403": "the key does not allow it",
    "404": "there is no such model or decision",
    "408": "the body took too long",
    "409": "contradicts what is known",
    "410": "the decision was made, but is no longer kept",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "422": "the body is not what it should be",
    "503": "try again later",
}


@cache
def specification() -> dict[str, Any]:
    _, components = msgspec.json.schema_components(_KINDS, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "belated: decisions with late rewards", "version": belated.__version__},
        "paths": {
            "/v1/models/{model}/decide": {"post": _post("Decide", bodies.DecideBody, bodies.DecideAnswer, ())},
            "/v1/models/{model}/feedback": {
                "post": _post("Report rewards", bodies.FeedbackBody, EventAnswer, ("202",))
            },
            "/v1/models/{model}/activate": {
                "post": _post("Activate decisions", bodies.ActivateBody, EventAnswer, ("202",))
            },
            "/v1/models/{model}/cancel": {"post": _post("Cancel decisions", bodies.CancelBody, EventAnswer, ("202",))},
            "/v1/models/{model}": {
                "get": _get("Show a model", "model"),
                "put": {
                    **_get("Make or change a model", "model"),
                    "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
                },
            },
            "/v1/models/{model}/decisions": {
                "delete": {
                    **_get("Erase decisions, or drop old ones", "model"),
                    "parameters": [
                        _parameter("model"),
                        _query("id", {"type": "array", "items": {"type": "string"}}, "of decisions to erase"),
                        _query("key", {"type": "array", "items": {"type": "string"}}, "of requests to erase"),
                        _query("keep_learned", {"type": "boolean"}, "whether what they taught stays; say it to erase"),
                        _query(
                            "before", {"type": "number"}, "drop all made before this time, and keep what they taught"
                        ),
                    ],
                }
            },
            "/v1/models": {"get": _get("List the models")},
            "/v1/decisions/{id}": {"get": _get("Look up a decision", "id", _schema(bodies.DecisionAnswer))},
            "/health/live": {"get": _get("Is the process alive?")},
            "/health/ready": {"get": _get("Can decisions be stored?")},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }


def _schema(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _one_or_many(kind: type) -> dict[str, Any]:
    return {"anyOf": [_schema(kind), {"type": "array", "items": _schema(kind)}]}


def _answers(schema: dict[str, Any], more: tuple[str, ...] = ()) -> dict[str, Any]:
    good = {"description": "done", "content": {"application/json": {"schema": schema}}}
    bad = {"content": {"application/json": {"schema": {"anyOf": [_schema(ErrorAnswer), _schema(EventAnswer)]}}}}
    return {
        "200": good,
        **dict.fromkeys(more, good),
        **{code: {"description": text, **bad} for code, text in _REFUSALS.items()},
    }


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": text}


def _post(summary: str, given: type, answer: type, more: tuple[str, ...]) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [_parameter("model")],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _one_or_many(given)}}},
        "responses": _answers(_one_or_many(answer), more),
    }


def _get(summary: str, parameter: str | None = None, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    named = {"parameters": [_parameter(parameter)]} if parameter else {}
    return {"summary": summary, **named, "responses": _answers(schema or {"type": "object"})}
